import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson, request, sending } from "../../lib/api.js";
import { useModes } from "../../lib/assistants.js";
import { readEvents } from "../../lib/events.js";
import { say } from "../../lib/store.js";
import { count, percent, short, visible } from "../../lib/text.js";

/** @typedef {{id: string, question: string, answers?: string[], answerable: boolean}} Row */
/** @typedef {{ran_at: string, mode: string, version: string, asked: number, right: number, wrong: Record<string, string>}} SetRun */
/** @typedef {{name: string, questions: Row[], runs: SetRun[]}} QuestionSet */

/** @returns {Promise<QuestionSet[]>} */
export const listSets = async () => (await fetchJson(address("/api/sets"))).sets;

/** The address of a file of questions, as `askgraph eval` reads it. @param {Row[]} rows */
export const asFile = (rows) => `data:application/x-ndjson;charset=utf-8,${encodeURIComponent(rows.map((row) => `${JSON.stringify(row)}\n`).join(""))}`;

/** The sets of questions that the workspace keeps, which runs become part of on their own pages. */
export function Sets() {
  const [sets, setSets] = useState(/** @type {QuestionSet[]} */ ([]));
  const load = () => listSets().then(setSets, () => {});
  useEffect(() => { load(); }, []);
  return sets.length > 0 && html`
    <details class="card fleet"><summary>Sets of questions</summary>${sets.map((each) => html`<${OneSet} key=${each.name} item=${each} load=${load} />`)}</details>`;
}

/** A set, asked from here, with what came of it each time. @param {{item: QuestionSet, load: () => Promise<void>}} props */
function OneSet({ item: { name, questions, runs }, load }) {
  const modes = useModes();
  const [progress, setProgress] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const going = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => going.current?.abort(), []);
  const path = `/api/sets/${encodeURIComponent(name)}`;
  const ask = async (event) => {
    event.preventDefault();
    const { signal } = (going.current = new AbortController());
    const mode = new FormData(event.currentTarget).get("mode");
    setProblem("");
    setProgress({ done: 0, total: questions.length });
    try {
      for await (const each of readEvents(await request(address(`${path}/runs`), { ...sending("POST", { mode }), signal }))) {
        if (each.type === "progress") setProgress(each);
        if (each.type === "error") setProblem(each.message);
        if (each.type === "report") say(`${each.right} of ${each.asked} are right.`);
      }
    } catch (error) {
      if (!signal.aborted) setProblem(/** @type {Error} */ (error).message);
    }
    setProgress(null);
    await load();
  };
  /** @param {string} id */
  const remove = (id) => fetchJson(address(`${path}/questions/${encodeURIComponent(id)}`), { method: "DELETE" }).then(load, (error) => setProblem(error.message));
  const asked = (id) => questions.find((each) => each.id === id)?.question ?? id;
  const lead = (id) => html`<a href=${address(`/debug/runs/${encodeURIComponent(id)}`)}><bdi>${short(asked(id), 100)}</bdi></a>`;
  return html`
    <section aria-label=${visible(name)}>
      <h2><bdi>${visible(name)}</bdi></h2>
      <form class="row" onSubmit=${ask}>
        <select name="mode" aria-label="Mode">${modes.map((mode) => html`<option key=${mode} value=${mode} selected=${mode === "standard"}>${visible(mode)}</option>`)}</select>
        ${progress ? html`<button type="button" onClick=${() => going.current?.abort()}>Stop</button>
          <progress max=${progress.total} value=${progress.done} aria-label="Asked questions"></progress><span class="soft">${progress.done} of ${progress.total}</span>`
          : html`<button type="submit" class="main">Ask ${count(questions.length, "question")}</button><a href=${asFile(questions)} download="${name}.jsonl">Download</a>`}
      </form>
      ${problem && html`<p class="note bad" role="alert">${visible(problem)}</p>`}
      ${runs.length > 0 && html`
        <div class="table" tabindex="0"><table>
          <thead><tr><th>When</th><th>Mode</th><th>Right</th><th>Version</th><th>Wrong</th></tr></thead>
          <tbody>${runs.map(({ ran_at, mode, asked, right, version, wrong }) => html`
            <tr key=${ran_at}><td>${new Date(ran_at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}</td><td>${visible(mode)}</td><td>${right} of ${asked} (${percent(asked ? right / asked : 0)})</td><td>${version}</td>
              <td>${Object.keys(wrong).length > 0 && html`<details><summary>${Object.keys(wrong).length}</summary>
                ${Object.entries(wrong).map(([id, why]) => html`<p key=${id}>${lead(id)} <span class="soft">${visible(why)}</span></p>`)}</details>`}</td></tr>`)}</tbody>
        </table></div>`}
      <details><summary class="soft">${count(questions.length, "question")}</summary>
        <ul>${questions.map(({ id, answers, answerable }) => html`
          <li key=${id}>${lead(id)} <span class="soft">${answerable ? visible(answers?.join(" / ")) : "the documents do not say"}</span>
            <button type="button" class="quiet" aria-label="Remove ${short(asked(id), 60)}" onClick=${() => remove(id)}>×</button></li>`)}</ul></details>
    </section>`;
}
