import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact-htm.js";
import { address, attempt, fetchJson } from "../../lib/api.js";
import { followRun, settle } from "../../lib/run-events.js";
import { say } from "../../lib/store.js";
import { decode, short, visible } from "../../lib/text.js";
import { STEPS, loadSteps } from "../steps.js";
import { Compare } from "./compare.js";
import { Graph } from "./graph.js";
import { Overview } from "./overview.js";
import { Step } from "./step.js";
import { Summary } from "./summary.js";
import { Tools } from "./tools.js";
import { Waterfall } from "./waterfall.js";

/** One run. @param {{runId: string}} props */
export function Run({ runId }) {
  const [trace, setTrace] = useState(/** @type {any} */ (null));
  const [why, setWhy] = useState(/** @type {any[]} */ ([]));
  const [status, setStatus] = useState(/** @type {any} */ (null));
  const [graph, setGraph] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  /** The steps that have begun, of a run that goes on. */
  const [begun, setBegun] = useState(/** @type {string[]} */ ([]));
  const [chosen, setChosen] = useState(decode(location.hash.slice(1)));
  const [other, setOther] = useState(new URLSearchParams(location.search).get("with"));
  const [difference, setDifference] = useState(/** @type {any} */ (null));
  /** What the form is to change. */
  const [wish, setWish] = useState(/** @type {any} */ (null));
  const path = `/api/runs/${encodeURIComponent(runId)}`;

  const asked = useRef(0);
  const load = async () => {
    asked.current += 1;
    const mine = asked.current;
    const found = await fetchJson(address(`${path}/trace`));
    // An older answer may come after a newer one.
    if (mine === asked.current) setTrace(found);
    return found;
  };
  const explain = () => {
    fetchJson(address(`${path}/why`)).then(({ facts }) => setWhy(facts), () => {});
    fetchJson(address(path)).then(setStatus, () => {});
  };
  useEffect(() => {
    loadSteps().then(setGraph);
    const leaving = new AbortController();
    /** @type {string[]} */
    let steps = [];
    let timer = 0;
    const hear = (event) => {
      if (event.type === "correction" && event.reason === "restart") steps = [];
      if (event.type !== "thinking") return;
      steps = [...steps, event.step];
      setBegun(steps);
      say(STEPS[event.step] ?? event.step);
      clearTimeout(timer);
      timer = setTimeout(() => load().catch(() => {}), 100);
    };
    attempt(async () => {
      if ((await load()).running) {
        await followRun(runId, hear, leaving.signal);
        if (leaving.signal.aborted) return;
        clearTimeout(timer);
        await settle(load);
        setBegun([]);
        say("The run has ended.");
      }
      explain();
    }, setProblem);
    return () => leaving.abort();
  }, []);
  useEffect(() => {
    if (trace) document.title = `${short(trace.question, 60)} · askgraph`;
  }, [trace?.question]);
  useEffect(() => {
    setDifference(null);
    if (!other || !path || trace?.running !== false) return;
    fetchJson(address(`${path}/diff/${encodeURIComponent(other)}`)).then(setDifference, (error) => setProblem(error.message));
  }, [other, trace?.running]);

  const middle = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {string} name a step; empty: the whole run @param {string | null} [compared] */
  const choose = (name, compared = null) => {
    setChosen(name);
    setOther(compared);
    const page = address(`/debug/runs/${encodeURIComponent(runId)}`, { with: compared });
    // So that Back leads to the step before, and not out of the run.
    history.pushState(null, "", name ? `${page}#${encodeURIComponent(name)}` : page);
    // In a narrow window the step stands below.
    if (matchMedia("(max-width: 60rem)").matches) middle.current?.scrollIntoView();
    middle.current?.focus({ preventScroll: true });
  };
  useEffect(() => {
    const back = () => {
      setChosen(decode(location.hash.slice(1)));
      setOther(new URLSearchParams(location.search).get("with"));
    };
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  const visits = useMemo(() => countVisits(trace, begun), [trace, begun]);
  if (!trace) return html`<h1 class="title">Run</h1>${problem ? html`<p class="note bad" role="alert">${visible(problem)}</p>` : html`<p class="soft" role="status">Reading it…</p>`}`;
  const step = trace.steps.find(({ name }) => name === chosen);
  // The tape would answer as the documents were then.
  const searchAnew = () => setWish({ place: `node ${trace.steps.find(({ node }) => node === "retrieve")?.name}`, anew: true, tape: false, rows: [] });
  const parts = difference?.first?.one ?? null;
  return html`
    <${Summary} trace=${trace} status=${status} again=${searchAnew} />
    <div role="alert">${problem && html`<p class="note bad">${visible(problem)}</p>`}</div>
    <div class="run">
      <section class="path" aria-label="Path">
        ${graph && html`<${Graph} graph=${graph} visits=${visits} chosen=${step?.node} parts=${parts} choose=${choose} />`}
        <${Waterfall} trace=${trace} chosen=${other ? null : chosen} parts=${parts} choose=${choose} />
      </section>
      <section class="middle-pane" aria-label="Chosen" tabindex="-1" ref=${middle}>
        ${other ? html`<${Compare} trace=${trace} other=${other} difference=${difference} close=${() => choose(chosen)} />`
          : step ? html`<${Step} key=${step.name} trace=${trace} step=${step} choose=${choose} edit=${setWish} />`
          : html`<${Overview} trace=${trace} why=${why} />`}
      </section>
      <${Tools} trace=${trace} step=${step} wish=${wish} setWish=${setWish} compare=${(id) => choose(chosen, id)} />
    </div>`;
}

/** For each node how often it ran, for how long, in which steps, and the ways that were taken.
 * @param {any} trace @param {string[]} begun */
function countVisits(trace, begun) {
  /** @type {Record<string, {times: number, ms: number, step: string, now: boolean}>} */
  const nodes = {};
  const ways = new Set();
  const ran = (trace?.steps ?? []).slice(1);
  // What the events tell is ahead of what is saved.
  const ahead = begun.slice(ran.length);
  let before = "";
  for (const { node, name, ms } of [...ran, ...ahead.map((each) => ({ node: each, name: "", ms: 0 }))]) {
    const known = nodes[node] ?? { times: 0, ms: 0 };
    nodes[node] = { times: known.times + 1, ms: known.ms + (ms ?? 0), step: name || known.step, now: false };
    if (before) ways.add(`${before} ${node}`);
    before = node;
  }
  if (begun.length && before && nodes[before]) nodes[before].now = true;
  return { nodes, ways };
}
