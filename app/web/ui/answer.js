import { html } from "../vendor/preact-htm.js";
import { narrow } from "../lib/evidence.js";
import { renderMarkdown } from "../lib/markdown.js";
import { memo } from "../lib/memo.js";
import { Marker } from "./marker.js";

/** The text of an answer, with a marker for every source that it names and has.
 * @param {{turn: string, text: string, sources: Citation[]}} props */
function AnswerText({ turn, text, sources }) {
  const nodes = renderMarkdown(text, (number, chunk, nth) => {
    const citation = sources.find(({ marker, chunk_id }) => (chunk ? chunk_id === chunk : marker === number));
    return citation ? html`<${Marker} turn=${turn} citation=${narrow(citation, nth)} nth=${citation.passages?.[nth] && nth} />` : null;
  });
  return html`<div class="answer">${nodes}</div>`;
}

export const Answer = memo(AnswerText);
