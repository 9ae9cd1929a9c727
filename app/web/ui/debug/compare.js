import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson } from "../../lib/api.js";
import { ending, money, time, tone } from "../../lib/figures.js";
import { count, percent, short, visible } from "../../lib/text.js";
import { renderReplaced } from "../../lib/passages.js";
import { NOTATION } from "../notation.js";
import { groupBySource, judge, listPlaces } from "./candidates.js";
import { Changes } from "./step.js";

/** Two runs side by side: where they part, their answers, their passages.
 * @param {{trace: any, other: string, difference: any, close: () => void}} props */
export function Compare({ trace, other, difference, close }) {
  const [second, setSecond] = useState(/** @type {any} */ (null));
  useEffect(() => {
    setSecond(null);
    fetchJson(address(`/api/runs/${encodeURIComponent(other)}/trace`)).then(setSecond, () => {});
  }, [other]);
  const { first, given, compared, same_steps } = difference ?? {};
  return html`
    <div class="heading"><h2>Side by side</h2><span class="grow"></span>
      <a href=${address(`/debug/runs/${encodeURIComponent(other)}`)}>Open the second</a>
      <button type="button" class="quiet" onClick=${close}>Close</button></div>
    ${!difference && html`<p class="soft" role="status">Comparing…</p>`}
    ${difference && html`
      <p>${compared.flipped.length ? html`Different: <b>${compared.flipped.join(", ")}</b>.` : "Outcome, answer, citations and verdict are the same."}</p>
      <div class="sides">
        <${Side} title="This run" side=${difference.one} other=${difference.other} mark="del" />
        <${Side} title="The second" side=${difference.other} other=${difference.one} mark="ins" />
      </div>
      ${given.length > 0 && html`<${Changes} changed=${given} title="The second was given" />`}
      <h3>Where they part</h3>
      ${first ? html`
        <p class="parts-here"><b>${visible(first.text)}</b>${same_steps ? `, after ${count(same_steps, "step")} that both took alike` : ""}.</p>
        ${first.changed.length > 0 && html`<${Changes} changed=${first.changed} title="What the second came to" />`}
        ${first.call && html`<details><summary>${visible(first.call.port)} ${visible(first.call.method)}: ${first.call.kind === "only" ? "one of them alone called it" : `another ${first.call.kind}`}</summary>
          <pre tabindex="0">${visible(first.call.lines.join("\n"))}</pre></details>`}` : html`<p>Nowhere: every step came to the same.</p>`}`}
    ${second && html`
      <h3>Passages</h3>
      <div class="sides">
        <${Passages} title="This run" trace=${trace} against=${second} />
        <${Passages} title="The second" trace=${second} against=${trace} />
      </div>`}`;
}

/** One of two runs, its answer with what the other does not say marked, for those who hear it by words.
 * @param {{title: string, side: any, other: any, mark: string}} props */
function Side({ title, side, other, mark }) {
  const wrap = (part) => html`<${mark}><span class="unseen"> only here: </span>${part}<span class="unseen"> end </span></${mark}>`;
  const { ending: end, costs } = side;
  return html`
    <section class="side" aria-label=${title}>
      <div class="heading"><h3>${title}</h3><span class="badge ${tone(end)}">${visible(ending(end))}</span></div>
      <p class="soft dots">${[visible(side.mode), end.outcome?.startsWith("answered") ? `confidence ${percent(end.confidence)}` : "", `steps took ${time(costs.ms)}`, costs.tokens ? count(costs.tokens, "token") : "", money(costs.cost)].filter(Boolean).map((fact) => html`<span key=${fact}>${fact}</span>`)}</p>
      ${end.answer ? html`<div class="answer written">${renderReplaced(end.answer, other.ending.answer, NOTATION, wrap)}</div>` : html`<p class="soft">No answer.</p>`}
      ${end.citations.length > 0 && html`<ul class="soft">${end.citations.map(({ name }, place) => html`<li key=${place}><bdi>${short(name, 90)}</bdi></li>`)}</ul>`}
    </section>`;
}

/** @param {any} trace */
const listRanked = (trace) => (trace.steps.findLast(({ node }) => node === "rerank") ?? trace.steps.findLast(({ candidates }) => candidates.length))?.candidates ?? [];

/** @param {{title: string, trace: any, against: any}} props */
function Passages({ title, trace, against }) {
  const others = new Map(listRanked(against).map((each) => [each.chunk_id, judge(each)[1]]));
  const own = listRanked(trace);
  if (!own.length) return html`<p class="soft">This run did not rank passages of its own.</p>`;
  return html`
    <section aria-label="Passages of ${title.toLowerCase()}"><h4>${title}</h4><ol class="places">
      ${groupBySource(own).slice(0, 15).map((group) => {
        const [each] = group;
        const [kind, word] = judge(each);
        return html`<li key=${each.chunk_id} class=${others.size && others.get(each.chunk_id) !== word ? "differs" : ""}>
          <span><bdi>${short(listPlaces(each.title).slice(-2).join(" › "), 90)}</bdi>${group.length > 1 && html` <span class="soft">and ${group.length - 1} more</span>`}</span> ${word && html`<span class="badge ${kind}">${word}</span>`}</li>`;
      })}
    </ol></section>`;
}
