import { html, useState } from "../../vendor/preact-htm.js";
import { score } from "../../lib/figures.js";
import { count, short, visible } from "../../lib/text.js";

const SHOWN = 8;

/** Passages from the searches to the answer: rank and score in each, and what became of them.
 * @param {{candidates: any[]}} props */
export function Candidates({ candidates }) {
  const [all, setAll] = useState(false);
  const groups = groupBySource(candidates);
  const shown = all ? groups : groups.slice(0, SHOWN);
  return html`
    <ol class="candidates">${shown.map(([first, ...others]) => html`<${Candidate} key=${first.chunk_id} candidate=${first} others=${others} />`)}</ol>
    ${shown.length < groups.length && html`<button type="button" onClick=${() => setAll(true)}>Show all ${candidates.length} passages</button>`}`;
}

/** Passages that became parts of one source stand together, at the place of the best. @param {any[]} candidates @returns {any[][]} */
export const groupBySource = (candidates) => [...Map.groupBy(candidates, ({ source, chunk_id }) => source ?? chunk_id).values()];

/** @param {{candidate: any, others?: any[], isPart?: boolean}} props `isPart`: of a source that is named above */
function Candidate({ candidate, others = [], isPart = false }) {
  const { title, snippet, dense, lexical, fused, rerank, moved, dropped } = candidate;
  const [kind, word] = judge(candidate);
  const places = listPlaces(title);
  const way = moved > 0 ? `, up ${moved}` : moved < 0 ? `, down ${-moved}` : "";
  return html`
    <li class="candidate ${kind}">
      <div class="heading"><span><b><bdi>${short(places.at(-1), 140)}</bdi></b>${places.length > 1 && html` <bdi class="soft">${short(places.slice(0, -1).join(" › "), 140)}</bdi>`}</span>
        ${word && !isPart && html`<span class="badge ${kind}">${word}</span>`}</div>
      ${dropped && kind === "bad" && html`<p class="dropped">${visible(dropped)}</p>`}
      <ul class="legs">
        <${Leg} name="meaning" ...${dense} /><${Leg} name="words" ...${lexical} /><${Leg} name="together" ...${fused} />
        ${rerank.score !== null && html`<${Leg} name="rerank" ...${rerank} more=${way} />`}
      </ul>
      ${snippet && html`<p class="soft" dir="auto">${visible(snippet)}</p>`}
      ${others.length > 0 && html`<details><summary>${count(others.length, "more passage")} of this source</summary>
        <ol class="candidates">${others.map((each) => html`<${Candidate} key=${each.chunk_id} candidate=${each} isPart=${true} />`)}</ol></details>`}
    </li>`;
}

/** Title and headings; the last ones tell passages of one document apart. @param {string | null} title @returns {string[]} */
export const listPlaces = (title) => (title ?? "Passage whose title is not on the tape").split(" › ");

/** @param {any} candidate @returns {[string, string]} */
export function judge({ cited, source, dropped }) {
  if (cited) return ["good", source === null ? "cited" : `cited as ${source}`];
  if (source !== null) return ["warn", `read as ${source}`];
  return dropped ? ["bad", "dropped"] : ["", ""];
}

/** @param {{name: string, rank: number | null, score: number | null, more?: string}} props */
function Leg({ name, rank, score: value, more = "" }) {
  const found = rank !== null || value !== null;
  return html`<li class=${found ? "" : "missing"}><span class="soft">${name}</span> ${found ? `${rank === null ? "" : `#${rank} · `}${score(value)}${more}` : "not found"}</li>`;
}
