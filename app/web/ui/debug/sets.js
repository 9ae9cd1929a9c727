import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson, request, sending } from "../../lib/api.js";
import { useModes } from "../../lib/assistants.js";
import { getState, say } from "../../lib/store.js";
import { count, percent, short, visible } from "../../lib/text.js";
import { useWork } from "./work.js";

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
  const { work, shown, problem, setProblem } = useWork("Asked questions");
  const path = `/api/sets/${encodeURIComponent(name)}`;
  const ask = async (event) => {
    event.preventDefault();
    const mode = new FormData(event.currentTarget).get("mode");
    await work(`${path}/runs`, { mode }, questions.length, ({ right, asked }) => say(`${right} of ${asked} are right.`));
    await load();
  };
  const remove = (id) => fetchJson(address(`${path}/questions/${encodeURIComponent(id)}`), { method: "DELETE" }).then(load, (error) => setProblem(error.message));
  // A set is asked in memory: for a run that can be looked into, its question is asked again, in the same mode.
  const open = (id, mode) => request("/api/chat", sending("POST", { question: write(id), mode, workspace: getState().workspace })).then(({ headers }) => location.assign(address(`/debug/runs/${headers.get("X-Run-Id")}`)), (error) => setProblem(error.message));
  const write = (id) => questions.find((each) => each.id === id)?.question ?? id;
  const lead = (id) => html`<a href=${address(`/debug/runs/${encodeURIComponent(id)}`)} title="The run that it was made of"><bdi>${short(write(id), 100)}</bdi></a>`;
  return html`
    <section aria-label=${visible(name)}>
      <h2><bdi>${visible(name)}</bdi></h2>
      <form class="row" onSubmit=${ask}>
        <select name="mode" aria-label="Mode">${modes.map((mode) => html`<option key=${mode} value=${mode} selected=${mode === "standard"}>${visible(mode)}</option>`)}</select>
        ${shown ?? html`<button type="submit" class="main">Ask ${count(questions.length, "question")}</button><a href=${asFile(questions)} download="${name}.jsonl">Download</a>`}
      </form>
      ${problem && html`<p class="note bad" role="alert">${visible(problem)}</p>`}
      ${runs.length > 0 && html`
        <div class="table" tabindex="0"><table>
          <thead><tr><th>When</th><th>Mode</th><th>Right</th><th>Version</th><th>Wrong</th></tr></thead>
          <tbody>${runs.map(({ ran_at, mode, asked, right, version, wrong }) => html`
            <tr key=${ran_at}><td>${new Date(ran_at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}</td><td>${visible(mode)}</td><td>${right} of ${asked} (${percent(asked ? right / asked : 0)})</td><td>${version}</td>
              <td>${Object.keys(wrong).length > 0 && html`<details><summary>${Object.keys(wrong).length}</summary>
                ${Object.entries(wrong).map(([id, why]) => html`<p key=${id}>${lead(id)} <span class="soft">${visible(why)}</span> <button type="button" class="quiet" onClick=${() => open(id, mode)}>Ask it now</button></p>`)}</details>`}</td></tr>`)}</tbody>
        </table></div>`}
      <details><summary class="soft">${count(questions.length, "question")}</summary>
        <ul>${questions.map(({ id, answers, answerable }) => html`
          <li key=${id}>${lead(id)} <span class="soft">${answerable ? visible(answers?.join(" / ")) : "the documents do not say"}</span>
            <button type="button" class="quiet" aria-label="Remove ${short(write(id), 60)}" onClick=${() => remove(id)}>×</button></li>`)}</ul></details>
    </section>`;
}
