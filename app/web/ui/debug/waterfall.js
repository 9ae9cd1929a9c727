import { html } from "../../vendor/preact-htm.js";
import { time } from "../../lib/figures.js";
import { count } from "../../lib/text.js";

/** What made the states that no node has made. @type {Record<string, string>} */
const WRITTEN = {
  __start__: "question", fork: "branch begins", cache: "stored answer", stop: "stopped",
};

/** @param {{name: string, node: string}} step */
export const nameStep = ({ name, node }) => WRITTEN[node] ?? name;

/** The steps in order, each where it lay in the time of the run.
 * @param {{trace: any, chosen: string | null, parts: string | null, choose: (step: string) => void}} props */
export function Waterfall({ trace, chosen, parts, choose }) {
  const ends = trace.steps.map(({ begins, ms }) => (begins ?? 0) + (ms ?? 0));
  const total = Math.max(trace.ms ?? 0, ...ends) || 1;
  return html`
    <ol class="waterfall card" aria-label="Steps">
      <li><button type="button" class="entry-step" aria-current=${chosen === "" ? "step" : undefined} onClick=${() => choose("")}><span>The whole run</span></button></li>
      ${trace.steps.map((step) => {
        const begins = (100 * (step.begins ?? 0)) / total;
        const share = Math.max((100 * (step.ms ?? 0)) / total, 0.8);
        const asked = step.calls.filter(({ messages }) => messages.length).length;
        return html`
          <li key=${step.name}>
            <button type="button" class="entry-step ${parts && parts === step.node ? "parts" : ""}" data-step=${step.name} aria-current=${chosen === step.name ? "step" : undefined} onClick=${() => choose(step.name)}>
              <span>${nameStep(step)}</span>
              <span class="soft more">${[parts && parts === step.node ? "here they part" : "", asked ? count(asked, "model call") : "", step.warnings.length ? count(step.warnings.length, "warning") : ""].filter(Boolean).join(" · ")}</span>
              <span class="soft">${step.ms === null ? "" : time(step.ms)}</span>
              ${step.ms !== null && html`<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect x=${Math.min(begins, 100 - share)} width=${share} height="1" /></svg>`}
            </button></li>`;
      })}
    </ol>`;
}
