import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson } from "../../lib/api.js";
import { ending, money, time, tone } from "../../lib/figures.js";
import { useStore } from "../../lib/store.js";
import { ago, count, percent, short, visible } from "../../lib/text.js";
import { Fleet } from "./fleet.js";

const SINCE = { "24h": "the last day", "7d": "the last week", "30d": "the last month", "365d": "the last year" };
const OUTCOMES = ["answered", "answered_with_caveat", "showed_passages", "abstained", "asked_back", "declined", "conversed"];
/** Choices that are one condition each. @type {Record<string, [string, string]>} */
const CHECKS = {
  retried: ["rephrased", "retries > 0"],
  unverified: ["claims without support", "verification in (unsupported, reconciled)"],
  failed: ["went wrong", "error ^= \"\""],
};

/** @typedef {Record<string, string>} Filters */

/** @returns {Filters} */
const readFilters = () => Object.fromEntries(new URLSearchParams(location.search));

/** The conditions that the filters stand for. @param {Filters} filters */
function listConditions({ outcome, mode, where, ...checks }) {
  return [
    outcome && `outcome == ${outcome}`,
    mode && `mode == ${JSON.stringify(mode)}`,
    where,
    ...Object.keys(CHECKS).filter((name) => checks[name]).map((name) => CHECKS[name][1]),
  ].filter(Boolean);
}

/** The list of runs that have ended, and what went wrong most. */
export function Runs() {
  const [filters, setFilters] = useState(readFilters());
  const [list, setList] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const since = filters.since ?? "7d";

  /** The filters that were chosen last: a slower answer about earlier ones must not take its place. */
  const latest = useRef(filters);
  /** @param {string | null} after */
  const load = async (after) => {
    latest.current = filters;
    const query = new URLSearchParams({ since, ...(after && { after }) });
    for (const condition of listConditions(filters)) query.append("where", condition);
    if (filters.workspace) query.set("workspace", filters.workspace);
    try {
      const page = await fetchJson(`/api/runs?${query}`);
      if (latest.current !== filters) return;
      setList(after ? { ...page, runs: [...list.runs, ...page.runs] } : page);
      setProblem("");
    } catch (error) {
      if (latest.current === filters) setProblem(/** @type {Error} */ (error).message);
    }
  };
  useEffect(() => void load(null), [filters]);
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
    <${Filter} filters=${filters} choose=${choose} />
    <div role="alert">${problem && html`<p class="note bad">${visible(problem)}</p>`}</div>
    <${Fleet} since=${since} where=${listConditions(filters)} />
    <div class="list-page">
      <section aria-label="Runs">
        <${Running} />
        ${list && !list.runs.length && html`<p class="card soft">No run of ${SINCE[since] ?? "this time"} is like that.</p>`}
        <ul class="runs card" hidden=${!list?.runs.length}>
          ${list?.runs.map((run) => html`<${Entry} key=${run.run_id} run=${run} />`)}
        </ul>
        ${list?.next && html`<button type="button" onClick=${() => load(list.next)}>Show more</button>`}
      </section>
      <${Failures} since=${since} />
    </div>`;
}

/** @param {{filters: Filters, choose: (chosen: Filters) => void}} props */
function Filter({ filters, choose }) {
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
    choose({ where: String(new FormData(event.currentTarget).get("where")).trim() });
  };
  /** @param {string} name @param {string} label @param {[string, string][]} options */
  const select = (name, label, options) => html`
    <label><span class="soft">${label}</span>
      <select name=${name} onChange=${pick}>
        ${options.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === (filters[name] ?? (name === "since" ? "7d" : ""))}>${words}</option>`)}
      </select></label>`;
  return html`
    <form class="filter card" onSubmit=${apply} aria-label="Filter">
      ${select("since", "From", Object.entries(SINCE))}
      ${select("outcome", "Outcome", [["", "any"], .../** @type {[string, string][]} */ (OUTCOMES.map((name) => [name, name.replaceAll("_", " ")]))])}
      ${select("mode", "Mode", [["", "any"], .../** @type {[string, string][]} */ (modes.map((name) => [name, name]))])}
      <label class="condition"><span class="soft">Where</span>
        <input key=${filters.where} name="where" class="search" placeholder="ms >= 500 or cost > 0.01" defaultValue=${filters.where ?? ""} spellcheck="false" autocomplete="off" /></label>
      <button type="submit">Filter</button>
      <div class="checks">${Object.entries(CHECKS).map(([name, [label]]) => html`
        <label key=${name} class="check"><input type="checkbox" name=${name} checked=${Boolean(filters[name])} onChange=${check} />${label}</label>`)}</div>
    </form>`;
}

/** @param {{run: any}} props */
function Entry({ run }) {
  const facts = [
    run.mode,
    time(run.ms),
    run.cost ? money(run.cost) : "",
    run.citations ? `confidence ${percent(run.confidence)}` : "",
    run.retries ? `rephrased ${count(run.retries, "time")}` : "",
    run.verification === "unsupported" || run.verification === "reconciled" ? `verification: ${run.verification}` : "",
    run.cached ? "from the cache" : "",
    run.replay ? "branch" : "",
    run.degraded ? "fell back" : "",
    ago(run.started_at),
  ].filter(Boolean);
  return html`
    <li><a href=${address(`/debug/runs/${encodeURIComponent(run.run_id)}`)}>
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

/** What did not go well, by cause. @param {{since: string}} props */
function Failures({ since }) {
  const [failures, setFailures] = useState(/** @type {any} */ (null));
  useEffect(() => {
    fetchJson(address("/api/failures", { since })).then(setFailures, () => setFailures(null));
  }, [since]);
  if (!failures) return html`<aside></aside>`;
  return html`
    <aside class="card failures" aria-label="What did not go well">
      <h2>What did not go well</h2>
      <p class="soft">${failures.failures} of ${count(failures.runs, "run")}, each under its gravest cause</p>
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
