import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact-htm.js";
import { address, attempt, fetchJson, request, sending } from "../../lib/api.js";
import { useModes } from "../../lib/assistants.js";
import { followRun, settle } from "../../lib/run-events.js";
import { getState, say } from "../../lib/store.js";
import { short, visible } from "../../lib/text.js";
import { STEPS } from "../steps.js";

/** Characters from which a value is edited in lines. */
const LONG = 200;

/** What is most worth changing, where a step is chosen: from where, and which value. @type {Record<string, [string, string]>} */
const FIRST = {
  route: ["node", "question"],
  retrieve: ["node", "profile.retrieval.candidates"],
  rerank: ["node", "profile.rerank.keep"],
  grade: ["after", "confidence"],
};

/** Changes one thing and runs on from a step, as a branch.
 * @param {{trace: any, step: any, wish: any, done: (runId: string) => void}} props */
export function Change({ trace, step, wish, done }) {
  const modes = useModes(wish?.mode);
  const ran = trace.steps.filter(({ ms }) => ms !== null);
  const preferred = step?.ms != null ? step : ran.findLast(({ node }) => node === "rerank") ?? ran[0];
  const [place, setPlace] = useState(wish?.place ?? "");
  const [changed, setRows] = useState(/** @type {[string, string][] | null} */ (wish?.rows ?? null));
  const [state, setState] = useState(/** @type {any} */ (null));
  const [documents, setDocuments] = useState(/** @type {any[] | null} */ (null));
  const [only, setOnly] = useState(/** @type {string[]} */ ([]));
  const [mode, setMode] = useState(/** @type {string} */ (wish?.mode ?? ""));
  const [now, setNow] = useState("");
  const [problem, setProblem] = useState("");
  const [kind, first] = FIRST[preferred?.node] ?? ["node", ""];
  const from = place || (preferred ? `${kind} ${preferred.name}` : "");
  const rows = changed ?? [[first, ""]];
  const [, name] = from.split(" ");
  const form = useRef(/** @type {HTMLElement | null} */ (null));
  // Whoever asked for a change goes on where it is made.
  useEffect(() => {
    if (wish) /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector("[aria-label='New value'], .main"))?.focus();
  }, []);
  useEffect(() => {
    if (!name) return;
    fetchJson(address(`/api/runs/${encodeURIComponent(trace.run_id)}/states/${encodeURIComponent(name)}`)).then(
      setState, () => {});
  }, [name]);
  // Only what the chosen step reads, or the edge after it.
  const settable = (state?.settable ?? []).filter(({ after }) => after === from.startsWith("after "));
  const values = useMemo(() => (state ? flatten(state.values) : {}), [state]);
  /** @param {string} key */
  const describe = (key) => settable.find((each) => each.name === key)?.text;

  const [[key, value]] = rows.length ? rows : [["", ""]];
  // Over many runs knobs and modes can be changed, and the search be made anew.
  const everywhere = wish?.anew ? { anew: "yes" } : rows.length === 1 && key.startsWith("profile.") && value !== "" ? { knob: key, value, profile: mode } : mode ? { profile: mode } : null;
  /** @param {number} number @param {[string, string]} row */
  const setRow = (number, row) => setRows(rows.map((each, at) => (at === number ? row : each)));
  const listDocuments = (event) => {
    if (event.currentTarget.open && !documents) fetchJson(address("/api/documents")).then((found) => setDocuments(found.documents), (error) => setProblem(error.message));
  };
  const run = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    /** @type {Record<string, any>} */
    const set = Object.fromEntries(rows.filter(([key, value]) => key && value !== ""));
    if (only.length) set.document_ids = only;
    const body = {
      run_id: trace.run_id, [from.split(" ")[0]]: name, set, mode: mode || null,
      tape: form.get("tape") ? "fill" : "off", workspace: getState().workspace,
    };
    setProblem("");
    setNow("Starting…");
    await attempt(async () => {
      const { headers, ...rest } = sending("POST", body);
      const response = await request(`/api/threads/${encodeURIComponent(trace.thread_id)}/replay`, { ...rest, headers: { ...headers, Accept: "text/event-stream" } });
      const id = response.headers.get("X-Run-Id") ?? "";
      let failed = "";
      await followRun(id, (each) => {
        if (each.type === "thinking") setNow(`${STEPS[each.step] ?? each.step}…`);
        if (each.type === "error") failed = each.message;
      }, new AbortController().signal, response);
      await settle(() => fetchJson(address(`/api/runs/${encodeURIComponent(id)}/trace`)));
      say(failed || "The branch has ended.");
      setProblem(failed);
      done(id);
    }, setProblem);
    setNow("");
  };
  return html`
    <form class="card change" ref=${form} onSubmit=${run}>
      <h2>Change and run on</h2>
      <label><span class="soft">Begin with</span>
        <select name="place" value=${from} onChange=${(event) => setPlace(event.currentTarget.value)}>
          ${ran.map(({ name: each }) => html`<option key=${each} value="node ${each}" selected=${from === `node ${each}`}>${each}, once more</option>`)}
          ${ran.map(({ name: each }) => html`<option key=${`after ${each}`} value="after ${each}" selected=${from === `after ${each}`}>what follows ${each}</option>`)}
        </select></label>
      ${rows.map(([key, value], number) => html`
        <fieldset key=${number} class="setting">
          <legend class="unseen">Change ${number + 1}</legend>
          <input aria-label="Value to change" list="settable" placeholder="such as question" value=${key} onInput=${(event) => setRow(number, [event.currentTarget.value, value])} spellcheck="false" autocomplete="off" />
          ${describe(key) && html`<p class="soft">${describe(key)}</p>`}
          ${value.length > LONG || key.startsWith("profile.prompts.") ? html`<textarea class="fact" aria-label="New value" rows="12" value=${value} onInput=${(event) => setRow(number, [key, event.currentTarget.value])}></textarea>` : html`
          <input aria-label="New value" value=${value} placeholder=${key in values ? `now ${short(show(values[key]), 24)}` : "new value"} onInput=${(event) => setRow(number, [key, event.currentTarget.value])} spellcheck="false" autocomplete="off" />`}
        </fieldset>`)}
      <datalist id="settable">${settable.map(({ name: key, text }) => html`<option key=${key} value=${key}>${short(text, 80)}</option>`)}</datalist>
      <button type="button" class="quiet" onClick=${() => setRows([...rows, ["", ""]])}>Another value</button>
      <label><span class="soft">Mode</span>
          <select name="mode" onChange=${(event) => setMode(event.currentTarget.value)}><option value="">as it was</option>${modes.map((each) => html`<option key=${each} value=${each} selected=${each === mode}>${visible(each)}</option>`)}</select></label>
      <details onToggle=${listDocuments}><summary>${only.length ? `Only ${only.length} documents` : "Other documents"}</summary>
        <ul class="documents">
          ${(documents ?? []).map(({ id, title }) => html`
            <li key=${id}><label class="check"><input type="checkbox" checked=${only.includes(id)} onChange=${(event) => setOnly(event.currentTarget.checked ? [...only, id] : only.filter((each) => each !== id))} /><bdi>${short(title, 60)}</bdi></label></li>`)}
        </ul></details>
      ${trace.taped && html`<label class="check"><input type="checkbox" name="tape" defaultChecked=${wish?.tape ?? true} />Answer from the tape what is on it</label>`}
      <div class="row"><button type="submit" class="main" disabled=${Boolean(now)}>Run on</button><span class="soft" role="status">${now}</span></div>
      ${everywhere && html`<p class="links"><a href=${address("/debug", everywhere)}>Try it on all runs</a></p>`}
      <div role="alert">${problem && html`<p class="note bad">${visible(problem)}</p>`}</div>
    </form>`;
}

/** The values by name; those of the profile with their path. @param {Record<string, any>} values */
function flatten(values) {
  /** @type {Record<string, any>} */
  const flat = {};
  const walk = (path, value) => {
    if (value && typeof value === "object" && !Array.isArray(value)) Object.entries(value).forEach(([key, part]) => walk(`${path}.${key}`, part));
    else flat[path] = value;
  };
  walk("profile", values.profile);
  return { ...values, ...flat };
}

/** @param {any} value */
const show = (value) => (typeof value === "string" ? value : JSON.stringify(value));
