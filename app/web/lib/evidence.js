/** Which citation the evidence pane shows, and what it needs to show it. */

import { address, fetchJson } from "./api.js";
import { getState, setState } from "./store.js";
import { listSources } from "./turns.js";

/** @param {Evidence} evidence */
function open(evidence) {
  // An entry of its own in the history, so that the browser's Back closes the pane, and does not leave the page.
  if (!history.state?.evidence) history.pushState({ evidence: true }, "");
  setState({ evidence, pane: "", tip: null });
}

/** @param {string} turn @param {number} marker @param {number} [nth] which of its passages; none: all of them */
export const openCitation = (turn, marker, nth) => open({ turn, marker, nth });

/** The citation with what its marker with this number rests on alone. @param {Citation} citation @param {number} [nth] */
export const narrow = (citation, nth = -1) => ({ ...citation, ...citation.passages?.[nth] });

/** @param {string} document @param {number} page */
export function openDocument(document, page = 1) {
  const { documents, evidence } = getState();
  // The list may show others by the time that somebody leafs.
  const item = documents?.find(({ id }) => id === document) ?? (evidence && "item" in evidence ? evidence.item : undefined);
  open({ document, page, item });
}

/** Closes the pane on what an answer rests on: another answer is asked for. A document of the library stays. */
export function leaveEvidence() {
  const { evidence } = getState();
  if (evidence && "turn" in evidence) close();
}

function close() {
  setState({ evidence: null });
  if (history.state?.evidence) history.back();
}

/** Closes the pane, and gives the focus back to the marker of what it showed. */
export function closeEvidence() {
  const { evidence } = getState();
  close();
  if (!evidence || !("turn" in evidence)) return;
  const turn = document.querySelector(`[data-turn="${evidence.turn}"]`);
  const named = `[data-marker="${evidence.marker}"]`;
  const marker = turn?.querySelector(`.marker${named}[data-nth="${evidence.nth}"]`) ?? turn?.querySelector(`.marker${named}, .chip${named}`);
  // The window is narrow, and what lies under a sheet takes no focus: the sheet goes with the next frame.
  requestAnimationFrame(() => requestAnimationFrame(() => /** @type {HTMLElement | null | undefined} */ (marker)?.focus()));
}

/** The passages through which one leafs: those of the answer, or where it cites none, what was read.
 * @param {Turn} turn @returns {{marker: number, nth?: number}[]} */
export function leafThrough(turn) {
  const sources = listSources(turn);
  const cited = sources.filter((source) => source.cited);
  return (cited.length ? cited : sources).flatMap(({ citation: { marker, passages } }) =>
    passages ? passages.map((_, nth) => ({ marker, nth })) : [{ marker }]);
}

/** Where what is open stands among them; -1: nowhere. @param {{marker: number, nth?: number}[]} all @param {{marker: number, nth?: number} | null} open */
export const findOpen = (all, open) => all.findIndex(({ marker, nth }) => marker === open?.marker && (nth ?? 0) === (open.nth ?? 0));

/** Shows the next citation, or the one before; with nothing open, the first of the last answer. @param {1 | -1} step */
export function leaf(step) {
  const { evidence, thread } = getState();
  const open = evidence && "turn" in evidence ? evidence : null;
  const turn = open ? thread?.turns.find(({ key }) => key === open.turn) : thread?.turns.findLast(({ cited }) => cited.length);
  if (!turn) return;
  const citations = leafThrough(turn);
  const place = findOpen(citations, open);
  const next = citations[open ? (place + step + citations.length) % citations.length : 0];
  if (next) openCitation(turn.key, next.marker, next.nth);
}

/** @param {string} document @param {number} page @param {number} [revision] @param {boolean} [wide] in twice the size */
export const pageAddress = (document, page, revision, wide = false) =>
  address(`/api/documents/${encodeURIComponent(document)}/pages/${page}.webp`, { revision, dpi: wide ? 220 : null });

/** @param {string} document @param {number} [revision] */
export const fileAddress = (document, revision) => address(`/api/documents/${encodeURIComponent(document)}/file`, { revision });

/** Fetches the picture of a citation's page before somebody asks for it. @param {Citation} citation */
export function prefetchPage({ document_id, page, revision }) {
  if (page) new Image().src = pageAddress(document_id, page, revision);
}

/** The last texts that were read, by address. @type {Map<string, Promise<any>>} */
const texts = new Map();

export const forgetTexts = () => texts.clear();

/** A document's text in blocks. @param {string} document @param {number} [revision] */
export function readBlocks(document, revision) {
  const from = address(`/api/documents/${encodeURIComponent(document)}/text`, { revision });
  const known = texts.get(from);
  if (known) return known;
  if (texts.size > 8) texts.clear();
  const reading = fetchJson(from);
  texts.set(from, reading);
  reading.catch(() => texts.delete(from));
  return reading;
}

/** The places of a document's pages where words stand. @param {string} document @param {string} words @returns {Promise<Found[]>} */
export async function findWords(document, words) {
  const { found } = await fetchJson(address(`/api/documents/${encodeURIComponent(document)}/find`, { words }));
  return found.filter(({ page }) => page);
}

/** The parts of a document's text that a citation quotes, as [start, end) in characters of the document.
 *
 * A model's citation covers a whole passage, of which `text` has the sentences in question, with an ellipsis for what
 * it leaves out. @param {Citation} citation @param {(start: number, end: number) => string} slice */
export function quotedRanges({ start, end, text }, slice) {
  const whole = slice(start, end);
  /** @type {[number, number][]} */
  const ranges = [];
  for (const part of text.split("…").map((each) => each.trim()).filter(Boolean)) {
    const at = whole.indexOf(part);
    if (at < 0) return [[start, end]];
    const before = [...whole.slice(0, at)].length;
    ranges.push([start + before, start + before + [...part].length]);
  }
  return ranges.length ? ranges : [[start, end]];
}
