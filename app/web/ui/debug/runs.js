import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson } from "../../lib/api.js";
import { ending, money, time, tone } from "../../lib/figures.js";
import { useStore } from "../../lib/store.js";
import { ago, count, percent, short, visible } from "../../lib/text.js";
import { Charts, OUTCOMES, day } from "./charts.js";
import { Fleet } from "./fleet.js";
import { Sets } from "./sets.js";
import { Views } from "./views.js";

/** The times that can be chosen, in days before today's midnight. @type {Record<string, [string, number]>} */
const SINCE = { today: ["today", 0], yesterday: ["yesterday", 1], "7d": ["the last 7 days", 6], "30d": ["the last 30 days", 29], "365d": ["the last year", 364], dates: ["dates…", 6] };
/** Choices that are one condition each. @type {Record<string, [string, string]>} */
const CHECKS = {
  complained: ["complained of", "rating == down"],
  outdated: ["document changed since", "outdated > 0"],
  retried: ["rephrased", "retries > 0"],
  unverified: ["claims without support", "verification in (unsupported, reconciled)"],
  failed: ["went wrong", "error ^= \"\""],
};
/** Filters by a name that the listed runs have. @type {Record<string, string>} */
const NAMED = { asked_by: "Asked by", documents: "Document", models: "Model" };

/** @typedef {Record<string, string>} Filters */

/** @returns {Filters} */
const readFilters = () => Object.fromEntries(new URLSearchParams(location.search));

/** The conditions that the filters stand for. @param {Filters} filters */
function listConditions({ outcome, mode, where, ...others }) {
  return [
    outcome && (OUTCOMES.includes(outcome) ? `outcome == ${outcome}` : `error == ${JSON.stringify(outcome)}`),
    mode && `mode == ${JSON.stringify(mode)}`,
    where,
    ...Object.keys(NAMED).filter((name) => others[name]).map((name) => `${name} == ${JSON.stringify(others[name])}`),
    ...Object.keys(CHECKS).filter((name) => others[name]).map((name) => CHECKS[name][1]),
  ].filter(Boolean);
}

/** Midnight where the reader is, so many days away from today. @param {number} days */
function midnight(days, from = new Date()) {
  return new Date(from.getFullYear(), from.getMonth(), from.getDate() + days);
}

/** A day or a time of the address. @param {string} text */
const readTime = (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00`) : new Date(text));

/** When the runs began that are wanted: as days are where the reader is. @param {Filters} filters */
function readSpan({ since = "7d", from, to }) {
  if (since !== "dates") {
    const start = midnight(-(SINCE[since] ?? SINCE["7d"])[1]);
    return { since: start.toISOString(), until: since === "yesterday" ? midnight(0).toISOString() : null };
  }
  const [first, last] = [from ? readTime(from) : midnight(-6), to ? readTime(to) : null];
  const end = last && (to.includes("T") ? last : midnight(1, last));
  const written = (date) => (date && !Number.isNaN(+date) ? date.toISOString() : null);
  return { since: written(first) ?? midnight(-6).toISOString(), until: written(end) };
}

/** The list of runs that have ended, what they come to, and what went wrong most. */
export function Runs() {
  const [filters, setFilters] = useState(readFilters());
  const [list, setList] = useState(/** @type {any} */ (null));
  const [figures, setFigures] = useState(/** @type {any} */ (null));
  const [failures, setFailures] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [pair, setPair] = useState(/** @type {string[]} */ ([]));
  const span = readSpan(filters);
  const { text = "", workspace } = filters;
  const where = listConditions(filters);

  /** The filters that were chosen last: a slower answer about earlier ones must not take its place. */
  const latest = useRef(filters);
  /** @param {string} path @param {(found: any) => void} take @param {string | null} [after] */
  const read = async (path, take, after = null) => {
    const given = Object.entries({ ...span, text, workspace, after }).filter(([, value]) => value);
    const query = new URLSearchParams(/** @type {[string, string][]} */ (given));
    for (const condition of where) query.append("where", condition);
    try {
      const found = await fetchJson(`${path}?${query}`);
      if (latest.current === filters) take(found);
    } catch (error) {
      if (latest.current !== filters) return;
      // What stands there is not what was asked for.
      take(null);
      setProblem(/** @type {Error} */ (error).message);
    }
  };
  useEffect(() => {
    latest.current = filters;
    setProblem("");
    read("/api/runs", setList);
    read("/api/figures", setFigures);
    read("/api/failures", setFailures);
  }, [filters]);
  useEffect(() => {
    const back = () => setFilters(readFilters());
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  /** @param {Filters} chosen */
  const choose = (chosen) => {
    const kept = Object.entries({ ...filters, ...chosen }).filter(([, value]) => value);
    history.pushState(null, "", `/debug${kept.length ? `?${new URLSearchParams(kept)}` : ""}`);
    setFilters(Object.fromEntries(kept));
  };
  return html`
    <h1 class="title">Runs</h1>
    <${Filter} filters=${filters} figures=${figures} choose=${choose} />
    <${Views} filters=${filters} />
    <div role="alert">${problem && html`<p class="note bad">${visible(problem)}</p>`}</div>
    ${figures?.total.runs > 0 && html`<${Charts} figures=${figures} outcome=${filters.outcome} choose=${choose} />`}
    <${Fleet} since=${span.since} until=${span.until} text=${text} where=${where} />
    <${Sets} />
    <div class="list-page">
      <section aria-label="Runs">
        <${Running} />
        ${list && !list.runs.length && html`<p class="card soft">No run ${filters.since === "dates" ? "of these dates" : `of ${(SINCE[filters.since] ?? SINCE["7d"])[0]}`} is like that.</p>`}
        <p class="links compare" role="status">${pair.length === 2 ? html`<a href=${address(`/debug/runs/${encodeURIComponent(pair[0])}`, { with: pair[1] })}>Compare these two</a>` : pair.length ? "Choose another run to compare it with." : ""}</p>
        <ul class="runs card" hidden=${!list?.runs.length}>
          ${list?.runs.map((run) => html`<${Entry} key=${run.run_id} run=${run} chosen=${pair.includes(run.run_id)} choose=${() => setPair(pair.includes(run.run_id) ? pair.filter((each) => each !== run.run_id) : [...pair, run.run_id].slice(-2))} />`)}
        </ul>
        ${list?.next && html`<button type="button" onClick=${() => read("/api/runs", (page) => page && setList({ ...page, runs: [...list.runs, ...page.runs] }), list.next)}>Show more</button>`}
      </section>
      <${Failures} failures=${failures} />
    </div>`;
}

/** @param {{filters: Filters, figures: any, choose: (chosen: Filters) => void}} props */
function Filter({ filters, figures, choose }) {
  const modes = useStore((state) => state.modes);
  const pick = (event) => {
    const { name, value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    choose({ [name]: value });
  };
  const check = (event) => {
    const { name, checked } = /** @type {HTMLInputElement} */ (event.currentTarget);
    choose({ [name]: checked ? "yes" : "" });
  };
  const apply = (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    choose(Object.fromEntries(["text", "where"].map((name) => [name, String(form.get(name) ?? "").trim()])));
  };
  const since = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    choose(value === "dates" ? { since: value, from: day(midnight(-6)), to: day(new Date()) } : { since: value, from: "", to: "" });
  };
  /** @param {string} name @param {string} label @param {[string, string][]} options */
  const select = (name, label, options, change = pick) => html`
    <label><span class="soft">${label}</span>
      <select name=${name} onChange=${change}>
        ${options.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === (filters[name] ?? (name === "since" ? "7d" : ""))}>${visible(words)}</option>`)}
      </select></label>`;
  const outcomes = filters.outcome && !OUTCOMES.includes(filters.outcome) ? [...OUTCOMES, filters.outcome] : OUTCOMES;
  const more = [...Object.keys(NAMED), ...Object.keys(CHECKS), "where"];
  return html`
    <form class="filter card" onSubmit=${apply} aria-label="Filter">
      <label class="condition"><span class="soft">Words of question or answer</span>
        <input key=${filters.text} type="search" name="text" class="search" maxlength="1000" defaultValue=${filters.text ?? ""} autocomplete="off" /></label>
      ${select("since", "When", Object.entries(SINCE).map(([value, [words]]) => [value, words]), since)}
      ${filters.since === "dates" && ["from", "to"].map((name) => html`
        <label key=${name}><span class="soft">${name === "from" ? "First day" : "Last day"}</span>
          <input type="date" class="search" name=${name} value=${filters[name] ? day(readTime(filters[name])) : ""} onChange=${pick} /></label>`)}
      ${select("outcome", "Outcome", [["", "any"], .../** @type {[string, string][]} */ (outcomes.map((name) => [name, name.replaceAll("_", " ")]))])}
      ${select("mode", "Mode", [["", "any"], .../** @type {[string, string][]} */ (modes.map((name) => [name, name]))])}
      <button type="submit">Filter</button>
      <details class="more" open=${more.some((name) => filters[name])}><summary>More filters</summary>
        <div class="filter">
          ${Object.entries(NAMED).map(([name, label]) => {
            const known = [...new Set([...Object.keys(figures?.[name] ?? {}), ...(filters[name] ? [filters[name]] : [])])];
            return known.length > 0 && select(name, label, [["", "any"], .../** @type {[string, string][]} */ (known.map((each) => [each, short(each, 60)]))]);
          })}
          <label class="condition"><span class="soft">Where</span>
            <input key=${filters.where} name="where" class="search" placeholder="ms >= 500 or cost > 0.01" defaultValue=${filters.where ?? ""} spellcheck="false" autocomplete="off" /></label>
          <div class="checks">${Object.entries(CHECKS).map(([name, [label]]) => html`
            <label key=${name} class="check"><input type="checkbox" name=${name} checked=${Boolean(filters[name])} onChange=${check} />${label}</label>`)}</div>
        </div></details>
    </form>`;
}

/** @param {{run: any, chosen: boolean, choose: () => void}} props */
function Entry({ run, chosen, choose }) {
  const facts = [
    run.rating === "down" ? "complained of" : "",
    run.outdated ? "document changed since" : "",
    run.mode,
    time(run.ms),
    run.cost ? money(run.cost) : "",
    run.outcome?.startsWith("answered") ? `confidence ${percent(run.confidence)}` : "",
    run.retries ? `rephrased ${count(run.retries, "time")}` : "",
    run.verification === "unsupported" || run.verification === "reconciled" ? `verification: ${run.verification}` : "",
    run.cached ? "from the cache" : "",
    run.replay ? "branch" : "",
    run.degraded ? "fell back" : "",
    run.asked_by,
    ago(run.started_at),
  ].filter(Boolean);
  return html`
    <li><label class="choice"><input type="checkbox" aria-label="Compare ${short(run.question, 80)}" checked=${chosen} onChange=${choose} /></label>
      <a href=${address(`/debug/runs/${encodeURIComponent(run.run_id)}`)}>
      <span class="asked"><bdi>${short(run.question, 160)}</bdi></span>
      <span class="badge ${tone(run)}">${visible(ending(run))}</span>
      <span class="soft dots">${facts.map((fact) => html`<span key=${fact}>${visible(fact)}</span>`)}</span>
    </a></li>`;
}

/** What is being answered at this moment. */
function Running() {
  const [threads, setThreads] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const look = () => fetchJson(address("/api/threads", { limit: 20 })).then(
      (found) => setThreads(found.threads.filter(({ running }) => running)), () => {});
    look();
    const timer = setInterval(look, 5000);
    return () => clearInterval(timer);
  }, []);
  return threads.length > 0 && html`
    <ul class="runs card" aria-label="Being answered now">
      ${threads.map(({ running, title }) => html`
        <li key=${running}><a href=${address(`/debug/runs/${encodeURIComponent(running)}`)}>
          <span class="asked"><bdi>${short(title, 160)}</bdi></span><span class="badge now">running</span></a></li>`)}
    </ul>`;
}

/** What did not go well, by cause. @param {{failures: any}} props */
function Failures({ failures }) {
  if (!failures?.runs) return html`<aside></aside>`;
  return html`
    <aside class="card failures" aria-label="What did not go well">
      <h2>What did not go well</h2>
      <p class="soft">${failures.failures} of ${count(failures.runs, "run")}, without branches and answers from the cache; each under its gravest cause</p>
      ${failures.groups.map((group) => html`
        <details key=${group.cause}>
          <summary><b>${group.runs}</b> ${visible(group.cause)}</summary>
          <ul>
            ${group.examples.map((each) => html`
              <li key=${each.run_id}><a href=${address(`/debug/runs/${encodeURIComponent(each.run_id)}`)}><bdi>${short(each.question, 90)}</bdi></a>
                ${each.detail && html` <span class="soft">${visible(each.detail)}</span>`}</li>`)}
          </ul>
        </details>`)}
    </aside>`;
}
