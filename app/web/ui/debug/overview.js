import { html } from "../../vendor/preact-htm.js";
import { renderMarkdown } from "../../lib/markdown.js";
import { visible } from "../../lib/text.js";
import { NOTATION } from "../notation.js";
import { Candidates } from "./candidates.js";

/** The answer, what decided it, and what became of the passages. @param {{trace: any, why: any[]}} props */
export function Overview({ trace, why }) {
  const ranked = trace.steps.findLast(({ node, candidates }) => node === "rerank" && candidates.length)
    ?? trace.steps.findLast(({ candidates }) => candidates.length);
  return html`
    <h2>Answer</h2>
    ${trace.answer ? html`<div class="answer">${renderMarkdown(trace.answer, { marker: (number, chunk) => html`<b class="number">[${chunk ?? number}]</b>`, ...NOTATION, text: visible })}</div>`
      : html`<p class="soft">${trace.running ? "The answer is being made." : "There is none."}</p>`}
    ${why.length > 0 && html`
      <h2>Why</h2>
      <dl class="why">${why.map(({ about, text }, place) => html`<div key=${place}><dt>${visible(about)}</dt><dd dir="auto">${about === "claim" || about === "doubt" ? renderMarkdown(text, { ...NOTATION, text: visible }) : visible(text)}</dd></div>`)}</dl>`}
    ${ranked && html`
      <h2>What became of the passages</h2>
      <${Candidates} candidates=${ranked.candidates} />`}
    ${!trace.taped && trace.untaped && html`<p class="note">${visible(trace.untaped)}</p>`}`;
}
