import { html } from "../vendor/preact-htm.js";
import { renderMarkdown } from "../lib/markdown.js";
import { memo } from "../lib/memo.js";
import { Marker } from "./marker.js";

/** The text of an answer, with a marker for every source that it names and has.
 * @param {{turn: string, text: string, sources: Citation[]}} props */
function AnswerText({ turn, text, sources }) {
  const nodes = renderMarkdown(text, (number, chunk) => {
    const citation = sources.find(({ marker, chunk_id }) => (chunk ? chunk_id === chunk : marker === number));
    return citation ? html`<${Marker} turn=${turn} citation=${citation} />` : null;
  });
  return html`<div class="answer">${nodes}</div>`;
}

export const Answer = memo(AnswerText);
