import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson, request } from "../../lib/api.js";
import { ending, time, tone } from "../../lib/figures.js";
import { setState } from "../../lib/store.js";
import { ago, visible } from "../../lib/text.js";
import { Confirm } from "../confirm.js";

/** The runs that continue this one or that it continues, as a tree.
 * @param {{runId: string, made: number, other: string | null, compare: (runId: string) => void}} props */
export function Branches({ runId, made, other, compare }) {
  const [runs, setRuns] = useState(/** @type {any[]} */ ([]));
  const [altered, setAltered] = useState(0);
  useEffect(() => {
    fetchJson(address(`/api/runs/${encodeURIComponent(runId)}/branches`)).then((tree) => setRuns(tree.runs), () => {});
  }, [runId, made, altered]);
  /** @param {string} thread */
  const remove = async (thread) => {
    try {
      await request(address(`/api/threads/${encodeURIComponent(thread)}`), { method: "DELETE" });
      setAltered(altered + 1);
    } catch (error) {
      setState({ trouble: /** @type {Error} */ (error).message });
    }
  };
  /** @param {string | null} parent */
  const list = (parent) => {
    const own = runs.filter((run) => run.parent === parent);
    return own.length > 0 && html`
      <ul class="tree">${own.map((run) => html`
        <li key=${run.run_id}>
          <div class="heading ${run.run_id === runId ? "current" : ""}">
            <span class="grow">${run.run_id === runId ? html`<b>This run</b>` : html`<a href=${address(`/debug/runs/${encodeURIComponent(run.run_id)}`)}>${describe(run)}</a>`}
              <span class="soft"> · ${time(run.ms)} · ${ago(run.started_at)}</span></span>
            <span class="badge ${tone(run)}">${visible(ending(run))}</span>
          </div>
          ${run.run_id !== runId && html`<button type="button" class="quiet" aria-pressed=${other === run.run_id} onClick=${() => compare(run.run_id)}>Compare</button>`}
          ${run.forked_from && run.run_id !== runId && html`<${Confirm} label="Delete" of=${describe(run)} act=${() => remove(run.thread_id)} />`}
          ${list(run.run_id)}
        </li>`)}
      </ul>`;
  };
  return html`
    <div class="card">
      <h2>Branches</h2>
      ${runs.length < 2 ? html`<p class="soft">None yet.</p>` : list(null)}
    </div>`;
}

/** @param {any} run */
function describe({ forked_from, mode }) {
  if (!forked_from) return "The first run";
  const { changed, node } = forked_from;
  return visible(`${changed.length ? changed.map((key) => key.replace("profile.", "")).join(", ") : `mode ${mode}`}${node ? ` from ${node}` : ""}`);
}
