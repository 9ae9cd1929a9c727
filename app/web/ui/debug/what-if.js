import { html, useState } from "../../vendor/preact-htm.js";
import { address, attempt, fetchJson, sending } from "../../lib/api.js";
import { ending, money } from "../../lib/figures.js";
import { visible } from "../../lib/text.js";

/** One table of what would have changed the end.
 * @param {{runId: string, cost: number | null, wish: (wish: any) => void}} props `cost` of the run */
export function WhatIf({ runId, cost, wish }) {
  const [table, setTable] = useState(/** @type {any} */ (null));
  const [waiting, setWaiting] = useState(false);
  const [problem, setProblem] = useState("");
  /** @param {boolean} models */
  const tryAll = async (models) => {
    setWaiting(true);
    await attempt(async () => {
      setTable(await fetchJson(address(`/api/runs/${encodeURIComponent(runId)}/whatif`), sending("POST", { models })));
      setProblem("");
    }, setProblem);
    setWaiting(false);
  };
  const outcomes = table?.outcomes ?? [];
  const tried = outcomes.filter(({ compared }) => compared);
  const unasked = outcomes.filter((each) => each.unasked);
  const others = outcomes.filter((each) => !flips(each));
  return html`
    <div class="card">
      <h2>What if</h2>
      <p class="soft">Tries each source left out, other thresholds, rerankers and modes. Stores nothing and asks no model that costs, unless you say so.</p>
      ${!table && html`<button type="button" disabled=${waiting} onClick=${() => tryAll(false)}>${waiting ? "Trying…" : "Try what would change it"}</button>`}
      <div role="status">${problem && html`<p class="note bad">${visible(problem)}</p>`}
        ${table && html`<p>${table.flipping} of ${tried.length} tried change something${unasked.length ? `; ${unasked.length} would ask the model.` : "."}</p>`}</div>
      ${unasked.length > 0 && html`<button type="button" disabled=${waiting} onClick=${() => tryAll(true)}>${waiting ? "Trying…" : `Ask it, ${cost ? `about ${money(cost * unasked.length)}` : "at a price not known"}`}</button>`}
      ${table && html`
        <${Variants} outcomes=${outcomes.filter(flips)} wish=${wish} />
        ${others.length > 0 && html`<details><summary>The other ${others.length}</summary><${Variants} outcomes=${others} wish=${wish} /></details>`}`}
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
