/** The events of one run, over broken connections. */

import { address, ApiError, request } from "./api.js";
import { isCut, readEvents } from "./events.js";

const MOST_FAILURES = 8;

/** Follows a run to its last event. `response` is a stream that has begun; without one the run is joined.
 * @param {string} runId @param {(event: any) => void} tell @param {AbortSignal} signal @param {Response | null} [response] */
export async function followRun(runId, tell, signal, response = null) {
  let last = "";
  for (let failures = 0; failures < MOST_FAILURES; failures += 1) {
    try {
      const stream = response ?? (await request(address(`/api/runs/${encodeURIComponent(runId)}/events`), {
        signal, headers: { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) },
      }));
      for await (const event of readEvents(stream)) {
        if (signal.aborted) return;
        if (isCut(event)) break;
        last = event.id || last;
        failures = 0;
        tell(event);
        if (event.type === "done" || event.type === "error") return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && !error.retryable) throw error;
    }
    response = null;
    await new Promise((resolve) => setTimeout(resolve, Math.min(5000, 300 * 2 ** failures)));
  }
}

/** Reads a run until its end is stored, which its last event precedes. @param {() => Promise<{running: boolean}>} read */
export async function settle(read) {
  for (let tries = 0; tries < 20 && (await read()).running; tries += 1) await new Promise((resolve) => setTimeout(resolve, 250));
}
