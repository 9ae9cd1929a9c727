import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address, attempt, fetchJson, sending } from "../../lib/api.js";
import { getState } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { asFile, listSets } from "./sets.js";
import { Change } from "./change.js";
import { WhatIf } from "./what-if.js";

/** What can be done with a run.
 * @param {{trace: any, step: any, wish: any, setWish: (wish: any) => void, compare: (runId: string) => void}} props */
export function Tools({ trace, step, wish, setWish, compare }) {
  if (trace.running) return html`<section class="tools-pane" aria-label="Tools"><p class="card soft">When the run has ended it can be changed, proved and exported here.</p></section>`;
  return html`
    <section class="tools-pane" aria-label="Tools">
      ${trace.steps.some(({ ms }) => ms !== null) ? html`
        <${Change} key=${wish ? JSON.stringify(wish) : ""} trace=${trace} step=${step} wish=${wish} done=${compare} />
        <${Prove} trace=${trace} />
        <${WhatIf} runId=${trace.run_id} cost=${trace.cost} wish=${setWish} />`
        : html`<p class="card soft">No step of this run is saved that could be run again.</p>`}
      <${TestCase} trace=${trace} />
      <${Export} runId=${trace.run_id} />
    </section>`;
}

/** Makes the run's question one of a set of the workspace, or of a file, with what its answer has to hold.
 * @param {{trace: any}} props */
function TestCase({ trace }) {
  const [question, setQuestion] = useState(trace.question);
  const [facts, setFacts] = useState("");
  const [unanswerable, setUnanswerable] = useState(false);
  const [sets, setSets] = useState(/** @type {string[]} */ ([]));
  const [said, setSaid] = useState("");
  useEffect(() => { listSets().then((found) => setSets(found.map(({ name }) => name)), () => {}); }, []);
  const answers = facts.split("\n").map((fact) => fact.trim()).filter(Boolean);
  const row = { id: trace.run_id, question: question.trim(), ...(unanswerable ? {} : { answers }), answerable: !unanswerable };
  const file = `case-${trace.run_id.slice(0, 8)}.jsonl`;
  const add = async (event) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("set")).trim();
    const { id, ...body } = row;
    await fetchJson(address(`/api/sets/${encodeURIComponent(name)}/questions/${encodeURIComponent(id)}`), sending("PUT", body))
      .then(() => setSaid(`It is in the set ${name}.`), (error) => setSaid(error.message));
  };
  const ready = question.trim() && (unanswerable || answers.length > 0);
  return html`
    <div class="card">
      <h2>Make it a test case</h2>
      <label><span class="soft">Question</span>
        <textarea class="fact" rows="2" maxlength="2000" value=${question} onInput=${(event) => setQuestion(event.currentTarget.value)}></textarea></label>
      ${trace.standalone_question && trace.standalone_question !== trace.question && html`<p class="soft">It was understood as <bdi>“${visible(trace.standalone_question)}”</bdi>. A test asks it by itself: write out what it took from the conversation.</p>`}
      <label><span class="soft">A right answer holds (other spellings on lines of their own)</span>
        <textarea class="fact" rows="2" value=${facts} disabled=${unanswerable} onInput=${(event) => setFacts(event.currentTarget.value)}></textarea></label>
      <label class="check"><input type="checkbox" checked=${unanswerable} onChange=${(event) => setUnanswerable(event.currentTarget.checked)} />The documents do not say</label>
      ${ready && html`
        <form class="row" onSubmit=${add}>
          <input class="search" name="set" aria-label="Set" list="sets" defaultValue=${sets[0] ?? "questions"} required pattern="\\w[\\w .\\-]*" maxlength="60" autocomplete="off" />
          <datalist id="sets">${sets.map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>
          <button type="submit">Add to this set</button></form>
        <p class="soft" role="status">${said ? html`${visible(said)} <a href=${address("/debug")}>Ask it</a>` : "It is kept on the server, and asked from the list of runs."}</p>
        <p class="links"><a href=${asFile([row])} download=${file}>Download ${file}</a></p>
        <p class="soft">Ask it with <span class="code">askgraph eval ${file} -w ${getState().workspace ?? "default"}</span>.</p>`}
    </div>`;
}

/** Runs it again from its tape alone. @param {{trace: any}} props */
function Prove({ trace }) {
  const [result, setResult] = useState(/** @type {any} */ (null));
  const [waiting, setWaiting] = useState(false);
  const prove = async () => {
    setWaiting(true);
    await attempt(async () => {
      const body = { run_id: trace.run_id, tape: "strict", workspace: getState().workspace };
      const replayed = await fetchJson(`/api/threads/${encodeURIComponent(trace.thread_id)}/replay?stream=false`, sending("POST", body));
      setResult(replayed.comparison);
    }, (problem) => setResult({ problem }));
    setWaiting(false);
  };
  return html`
    <div class="card">
      <h2>Prove it</h2>
      <p class="soft">Runs it again from its tape alone, and compares every event and the final state.</p>
      <button type="button" disabled=${waiting} onClick=${prove}>${waiting ? "Replaying…" : "Replay strictly"}</button>
      <div role="status">
        ${result?.identical && html`<p class="right">✓ Identical</p>`}
        ${result?.problem && html`<p class="note">${visible(result.problem)}</p>`}
        ${result && !result.identical && !result.problem && html`<p class="wrong">✗ It differs</p><pre tabindex="0">${visible(result.differences.join("\n"))}</pre>`}
      </div>
    </div>`;
}

/** @param {{runId: string}} props */
function Export({ runId }) {
  const path = `/api/runs/${encodeURIComponent(runId)}/bundle`;
  return html`
    <div class="card">
      <h2>Export</h2>
      <p class="soft">One file that opens on any machine, and that <span class="code">askgraph replay --tape strict</span> repeats.</p>
      <p class="links"><a href=${address(path)} download>Download the bundle</a></p>
    </div>`;
}
