import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address, attempt, fetchJson, sending } from "../../lib/api.js";
import { useModes } from "../../lib/assistants.js";
import { ending, money } from "../../lib/figures.js";
import { say } from "../../lib/store.js";
import { count, percent, short, visible } from "../../lib/text.js";
import { useWork } from "./work.js";

const SHOWN = 20;

/** Replays the runs that are listed with one change: first what that would do, then how far it is, then the report.
 * @param {{since: string, until: string | null, text: string, where: string[]}} props */
export function Fleet({ since, until, text: words, where }) {
  /** The change that a run's page asks to try here. */
  const [wished] = useState(/** @type {Record<string, string>} */ (Object.fromEntries(new URLSearchParams(location.search))));
  const modes = useModes(wished.profile);
  const [wanted, setWanted] = useState(/** @type {any} */ (null));
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [report, setReport] = useState(/** @type {any} */ (null));
  const { work, shown, problem, setProblem } = useWork("Replayed runs");
  // Other runs are another plan.
  useEffect(() => setPlan(null), [since, until, words, where.join()]);

  const ask = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name) => String(form.get(name) ?? "").trim();
    const body = {
      since, until, text: words, where, mode: text("mode") || null, search_anew: form.has("anew"), budget: text("budget") ? Number(text("budget")) : null,
      set: text("knob") ? { [text("knob")]: text("value") } : {},
    };
    setProblem("");
    setReport(null);
    setPlan(null);
    await attempt(async () => {
      setPlan(await fetchJson(address("/api/replays/plan"), sending("POST", body)));
      setWanted(body);
    }, setProblem);
  };
  const run = () => {
    setReport(null);
    work("/api/replays", wanted, plan.affected, ({ report }) => {
      setReport(report);
      say(`The report is there: ${report.changed} of ${report.tried} changed.`);
    });
  };
  return html`
    <details class="card fleet" open=${["knob", "profile", "anew"].some((name) => wished[name])}>
      <summary>Try a change on these runs</summary>
      <form class="filter" onSubmit=${ask} aria-label="Try a change">
        <label class="condition"><span class="soft">Knob</span><input class="search" name="knob" defaultValue=${wished.knob ?? ""} placeholder="profile.rerank.keep" spellcheck="false" autocomplete="off" /></label>
        <label><span class="soft">New value</span><input class="search" name="value" defaultValue=${wished.value ?? ""} placeholder="3" spellcheck="false" autocomplete="off" /></label>
        <label><span class="soft">Profile</span>
          <select name="mode"><option value="">as it was</option>${modes.map((each) => html`<option key=${each} value=${each} selected=${each === wished.profile}>${visible(each)}</option>`)}</select></label>
        <label><span class="soft">Budget in dollars</span><input class="search" name="budget" type="number" min="0" step="any" placeholder="no model" /></label>
        <label class="check"><input type="checkbox" name="anew" defaultChecked=${Boolean(wished.anew)} />Only search anew</label>
        <button type="submit" disabled=${Boolean(shown)}>Show what it would do</button>
      </form>
      <div role="status">${plan && html`<${Plan} plan=${plan} budget=${wanted.budget} />`}</div>
      ${plan?.affected > 0 && html`
        <div class="row">
          ${shown ?? html`<button type="button" class="main" onClick=${run}>Replay ${count(plan.affected, "run")}</button>`}
        </div>`}
      ${problem && html`<p class="note bad" role="alert">${visible(problem)}</p>`}
      ${report && html`<${Report} report=${report} />`}
    </details>`;
}

/** @param {{plan: any, budget: number | null}} props */
function Plan({ plan, budget }) {
  const named = (counts) => Object.entries(counts).map(([name, number]) => `${number} ${name}`).join(", ");
  const unknown = plan.unpriced_calls ? `, and ${count(plan.unpriced_calls, "call")} whose price is not known` : "";
  return html`
    <p>${plan.affected} of ${count(plan.runs, "run")} would be replayed${plan.affected ? ` (first step: ${visible(named(plan.begins))})` : ""}; ${plan.unaffected} read nothing that changes${Object.keys(plan.skipped).length ? `; left out: ${visible(named(plan.skipped))}` : ""}.
      ${" "}These steps cost $${plan.repeated_cost.toFixed(4)}${unknown} then; ${budget === null ? "no language model is asked" : `language models may cost $${budget.toFixed(2)}`}.</p>`;
}

/** @param {{report: any}} props */
function Report({ report }) {
  const different = report.runs.filter((row) => row.compared?.flipped.length).slice(0, SHOWN);
  /** @type {[string, any][]} */
  const figures = [
    ["Changed", `${report.changed} of ${report.tried} (${percent(report.share_changed)})`],
    ["Citations", `${report.citations_gained} gained, ${report.citations_lost} lost`], ["Routes changed", report.routes_changed], ["Spent", money(report.spent)],
  ];
  return html`
    <section aria-label="Report">
      <h2>With ${visible(report.change)}</h2>
      <dl class="facts-row">${figures.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      <ul>${Object.entries(report.outcomes).map(([change, number]) => html`<li key=${change}>${number} × ${visible(change)}</li>`)}
        ${Object.entries(report.not_tried).map(([reason, number]) => html`<li key=${reason}>${number} not tried: ${visible(reason)}</li>`)}</ul>
      ${different.length > 0 && html`<h3>Most different</h3>`}
      ${different.map((row) => html`<${Pair} key=${row.run_id} row=${row} />`)}
    </section>`;
}

/** @param {{row: any}} props */
const Pair = ({ row }) => html`
  <details>
    <summary><bdi>${short(row.question, 100)}</bdi></summary>
    <p class="links"><a href=${address(`/debug/runs/${encodeURIComponent(row.run_id)}`)}>Open the run</a></p>
    <div class="sides">${[["Then", row.recorded], ["Now", row.ending]].map(([title, end]) => html`
      <section key=${title} class="side" aria-label=${title}><div class="heading"><h4>${title}</h4><span class="badge">${visible(ending(end))}</span></div>
        <div class="written" dir="auto">${visible(end.answer || "No answer.")}</div></section>`)}</div>
  </details>`;
