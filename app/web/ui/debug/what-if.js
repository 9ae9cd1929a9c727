import { html, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson, sending } from "../../lib/api.js";
import { ending } from "../../lib/figures.js";
import { visible } from "../../lib/text.js";

/** One table of what would have changed the end.
 * @param {{runId: string, wish: (wish: any) => void}} props */
export function WhatIf({ runId, wish }) {
  const [table, setTable] = useState(/** @type {any} */ (null));
  const [waiting, setWaiting] = useState(false);
  const [problem, setProblem] = useState("");
  const tryAll = async () => {
    setWaiting(true);
    try {
      setTable(await fetchJson(address(`/api/runs/${encodeURIComponent(runId)}/whatif`), sending("POST", {})));
      setProblem("");
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
    setWaiting(false);
  };
  return html`
    <div class="card">
      <h2>What if</h2>
      <p class="soft">Tries each source left out, other thresholds, rerankers and modes. Stores nothing and asks no model that costs.</p>
      <button type="button" disabled=${waiting} onClick=${tryAll}>${waiting ? "Trying…" : "Try what would change it"}</button>
      <div role="status">${problem && html`<p class="note bad">${visible(problem)}</p>`}
        ${table && html`<p>${table.flipping} of ${table.outcomes.length} change something.</p>`}</div>
      ${table && html`
        <${Variants} outcomes=${table.outcomes.filter(flips)} wish=${wish} />
        <details><summary>The other ${table.outcomes.length - table.flipping}</summary>
          <${Variants} outcomes=${table.outcomes.filter((each) => !flips(each))} wish=${wish} /></details>`}
    </div>`;
}

const flips = ({ compared }) => compared?.flipped.length > 0;

/** @param {{outcomes: any[], wish: (wish: any) => void}} props */
const Variants = ({ outcomes, wish }) => html`<ul class="variants">${outcomes.map((each) => html`<${Variant} key=${each.label} outcome=${each} wish=${wish} />`)}</ul>`;

/** @param {{outcome: any, wish: (wish: any) => void}} props */
function Variant({ outcome, wish }) {
  const { label, compared, ending: end, problem, node, after } = outcome;
  const flipped = compared?.flipped ?? [];
  const take = () => wish({
    place: node ? `node ${node}` : `after ${after}`, mode: outcome.mode, anew: outcome.kind === "documents",
    // The tape would answer a search as it was answered then.
    tape: outcome.kind !== "documents",
    rows: Object.entries(outcome.set).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]),
  });
  return html`
    <li>
      <span class="grow"><bdi>${visible(label)}</bdi>
        <span class="soft"> ${problem ? visible(problem) : flipped.length ? `changes ${flipped.join(", ")}: ${visible(ending(end))}` : "the same"}</span></span>
      ${(node || after) && html`<button type="button" class="quiet" aria-label="Use this: ${visible(label)}" onClick=${take}>Use this</button>`}
    </li>`;
}
