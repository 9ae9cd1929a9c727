import { html } from "../../vendor/preact-htm.js";
import { visible } from "../../lib/text.js";
import { Candidates } from "./candidates.js";

/** The answer, what decided it, and what became of the passages. @param {{trace: any, why: any[]}} props */
export function Overview({ trace, why }) {
  const ranked = trace.steps.findLast(({ node, candidates }) => node === "rerank" && candidates.length)
    ?? trace.steps.findLast(({ candidates }) => candidates.length);
  return html`
    <h2>Answer</h2>
    <${Text} text=${trace.answer} empty=${trace.running ? "The answer is being made." : "There is none."} />
    ${why.length > 0 && html`
      <h2>Why</h2>
      <dl class="why">${why.map(({ about, text }, place) => html`<div key=${place}><dt>${visible(about)}</dt><dd><bdi>${visible(text)}</bdi></dd></div>`)}</dl>`}
    ${ranked && html`
      <h2>What became of the passages</h2>
      <${Candidates} candidates=${ranked.candidates} />`}
    ${!trace.taped && trace.untaped && html`<p class="note">${visible(trace.untaped)}</p>`}`;
}

/** Text as it was written. @param {{text: string, empty?: string}} props */
export function Text({ text, empty = "Nothing." }) {
  if (!text) return html`<p class="soft">${empty}</p>`;
  // Markers stand out.
  const parts = visible(text).split(/(\[\d{1,3}(?:, ?\d{1,3})*\])/);
  return html`<div class="written" dir="auto">${parts.map((part, place) => (place % 2 ? html`<b key=${place} class="number">${part}</b>` : part))}</div>`;
}
