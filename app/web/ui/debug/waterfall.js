import { html } from "../../vendor/preact-htm.js";
import { time } from "../../lib/figures.js";
import { count } from "../../lib/text.js";

/** What made the states that no node has made. @type {Record<string, string>} */
const WRITTEN = {
  __start__: "question", fork: "branch begins", cache: "stored answer", stop: "stopped", thinned: "only the end is kept",
  migration: "state upgraded",
};

/** @param {{name: string, node: string}} step */
export const nameStep = ({ name, node }) => WRITTEN[node] ?? name;

/** The steps in order, each with its share of the time.
 * @param {{trace: any, chosen: string | null, parts: string | null, choose: (step: string) => void}} props */
export function Waterfall({ trace, chosen, parts, choose }) {
  const total = trace.steps.reduce((sum, { ms }) => sum + (ms ?? 0), 0) || 1;
  let before = 0;
  return html`
    <ol class="waterfall card" aria-label="Steps">
      <li><button type="button" class="entry-step" aria-current=${chosen === "" ? "step" : undefined} onClick=${() => choose("")}><span>The whole run</span></button></li>
      ${trace.steps.map((step) => {
        const begins = (100 * before) / total;
        const share = (100 * (step.ms ?? 0)) / total;
        before += step.ms ?? 0;
        const asked = step.calls.filter(({ messages }) => messages.length).length;
        return html`
          <li key=${step.name}>
            <button type="button" class="entry-step ${parts && parts === step.node ? "parts" : ""}" data-step=${step.name} aria-current=${chosen === step.name ? "step" : undefined} onClick=${() => choose(step.name)}>
              <span>${nameStep(step)}</span>
              <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">${step.ms !== null && html`<rect x=${Math.min(begins, 99)} y="1" width=${Math.max(share, 1)} height="6" />`}</svg>
              <span class="soft">${step.ms === null ? "" : time(step.ms)}</span>
              ${(asked > 0 || step.warnings.length > 0 || (parts && parts === step.node)) && html`
                <span class="soft more">${[parts && parts === step.node ? "here they part" : "", asked ? `asked a model ${count(asked, "time")}` : "", step.warnings.length ? count(step.warnings.length, "warning") : ""].filter(Boolean).join(" · ")}</span>`}
            </button></li>`;
      })}
    </ol>`;
}
