import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson } from "../../lib/api.js";
import { ending, tone } from "../../lib/figures.js";
import { short, visible } from "../../lib/text.js";

/** The other questions of the run's conversation, in their order; nothing where there is only this one. @param {{trace: any}} props */
export function Thread({ trace: { thread_id, run_id } }) {
  const [runs, setRuns] = useState(/** @type {any[]} */ ([]));
  const where = `thread_id == ${JSON.stringify(thread_id)}`;
  useEffect(() => void fetchJson(address("/api/runs", { since: "2000-01-01", limit: 200, where })).then((found) => setRuns(found.runs.reverse()), () => {}), [thread_id]);
  if (runs.every((each) => each.run_id === run_id)) return null;
  // One that has not ended is not on the list.
  const place = runs.findIndex((each) => each.run_id === run_id) + 1 || runs.length + 1;
  return html`
    <details class="thread"><summary>Question ${place} of ${Math.max(place, runs.length)} in its conversation</summary>
      <ol>${runs.map((run) => html`
        <li key=${run.run_id}><a href=${address(`/debug/runs/${encodeURIComponent(run.run_id)}`)} aria-current=${run.run_id === run_id ? "page" : undefined}><bdi>${short(run.question, 120)}</bdi></a>
          ${" "}<span class="badge ${tone(run)}">${visible(ending(run))}</span></li>`)}</ol>
      <p class="links"><a href=${address("/debug", { since: "dates", from: runs[0].started_at, where })}>All of them, with their time and cost</a></p>
    </details>`;
}
