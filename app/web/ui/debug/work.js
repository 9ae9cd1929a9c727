import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { address, request, sending } from "../../lib/api.js";
import { readEvents } from "../../lib/events.js";
import { say } from "../../lib/store.js";

/** What takes the server a while: how far it is, with a way to stop it, and what went wrong. @param {string} label */
export function useWork(label) {
  const [progress, setProgress] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const going = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => going.current?.abort(), []);
  /** @param {string} path @param {any} body @param {number} total @param {(report: any) => void} take */
  const work = async (path, body, total, take) => {
    const { signal } = (going.current = new AbortController());
    setProblem("");
    setProgress({ done: 0, total });
    try {
      const { headers, ...rest } = sending("POST", body);
      for await (const event of readEvents(await request(address(path), { ...rest, headers: { ...headers, Accept: "text/event-stream" }, signal }))) {
        if (event.type === "progress") setProgress(event);
        if (event.type === "error") setProblem(event.message);
        if (event.type === "report") take(event);
      }
    } catch (error) {
      if (signal.aborted) say("Stopped.");
      else setProblem(/** @type {Error} */ (error).message);
    }
    setProgress(null);
  };
  const shown = progress && html`<button type="button" onClick=${() => going.current?.abort()}>Stop</button>
    <progress max=${progress.total} value=${progress.done} aria-label=${label}></progress><span class="soft">${progress.done} of ${progress.total}</span>`;
  return { work, shown, problem, setProblem };
}
