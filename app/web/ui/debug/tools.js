import { html, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson, sending } from "../../lib/api.js";
import { getState } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { Change } from "./change.js";
import { WhatIf } from "./what-if.js";

/** What can be done with a run. @param {{trace: any, step: any, compare: (runId: string) => void}} props */
export function Tools({ trace, step, compare }) {
  const [wish, setWish] = useState(/** @type {any} */ (null));
  if (trace.running) return html`<section class="tools-pane" aria-label="Tools"><p class="card soft">When the run has ended it can be changed, proved and exported here.</p></section>`;
  return html`
    <section class="tools-pane" aria-label="Tools">
      <${Change} key=${wish ? JSON.stringify(wish) : ""} trace=${trace} step=${step} wish=${wish} done=${compare} />
      <${Prove} trace=${trace} />
      <${WhatIf} runId=${trace.run_id} wish=${setWish} />
      <${Export} runId=${trace.run_id} />
    </section>`;
}

/** Runs it again from its tape alone. @param {{trace: any}} props */
function Prove({ trace }) {
  const [result, setResult] = useState(/** @type {any} */ (null));
  const [waiting, setWaiting] = useState(false);
  const prove = async () => {
    setWaiting(true);
    try {
      const body = { run_id: trace.run_id, tape: "strict", workspace: getState().workspace };
      const replayed = await fetchJson(`/api/threads/${encodeURIComponent(trace.thread_id)}/replay?stream=false`, sending("POST", body));
      setResult(replayed.comparison);
    } catch (error) {
      setResult({ problem: /** @type {Error} */ (error).message });
    }
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
      <p class="soft">One file that opens on any machine, and that <span class="code">askgraph test</span> repeats.</p>
      <p class="links"><a href=${address(path)} download>Download the bundle</a></p>
    </div>`;
}
