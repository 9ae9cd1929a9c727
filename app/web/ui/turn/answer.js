import { html } from "../../vendor/preact-htm.js";
import { narrow, openDocument } from "../../lib/evidence.js";
import { renderMarkdown } from "../../lib/markdown.js";
import { memo } from "../../lib/memo.js";
import { useStore } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { NOTATION } from "../notation.js";
import { Marker } from "./marker.js";

/** The text of an answer, with a marker for every source that it names and has. Of one about the library the documents
 * that it names can be opened; the choices of a question back are offered below.
 * @param {{turn: string, text: string, sources: Citation[], outcome?: string}} props */
function AnswerText({ turn, text, sources, outcome }) {
  const documents = useStore((state) => (outcome === "conversed" ? state.documents : null));
  const nodes = renderMarkdown(text, {
    marker: (number, chunk, nth) => {
      const citation = sources.find(({ marker, chunk_id }) => (chunk ? chunk_id === chunk : marker === number));
      return citation ? html`<${Marker} turn=${turn} citation=${narrow(citation, nth)} nth=${citation.passages?.[nth] && nth} />` : null;
    },
    ...NOTATION,
    text: documents?.length ? (plain) => nameDocuments(plain, documents) : visible,
  });
  return html`<div class="answer ${outcome ?? ""}">${nodes}</div>`;
}

export const Answer = memo(AnswerText);

/** The text with a button in place of each title in quotation marks. @param {string} plain @param {LibraryDocument[]} documents */
function nameDocuments(plain, documents) {
  const parts = [];
  let begun = 0;
  for (const found of plain.matchAll(/[“„«"]\s?(.+?)\s?[”“»"]/g)) {
    const document = documents.find(({ title }) => title === found[1]);
    if (!document) continue;
    parts.push(visible(plain.slice(begun, found.index)), html`<button type="button" class="named" onClick=${() => openDocument(document.id)}>${visible(found[0])}</button>`);
    begun = found.index + found[0].length;
  }
  return [...parts, visible(plain.slice(begun))];
}
