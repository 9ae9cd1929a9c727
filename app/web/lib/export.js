/** Conversations for elsewhere: as a file, and as text with sources. */

import { address, fetchJson } from "./api.js";
import { phrase } from "./language.js";
import { learnNames, listKnown, MOST_NAMED, nameLimits } from "./library.js";
import { getState } from "./store.js";
import { fileName, place } from "./text.js";
import { listSources, restoreTurn } from "./turns.js";

/** What an answer cites. @param {Turn} turn */
export const listCited = (turn) => listSources(turn).filter((source) => source.cited).map(({ citation }) => citation);

/** Title, place and file of what is cited. @param {Citation} citation */
export const nameCited = (citation) => [citation.title, place(citation), fileName(citation.source ?? "")].filter(Boolean).join(", ");

/** What an answer was limited to. @param {Turn} turn */
export function nameScope({ options }) {
  const names = nameLimits(options, listKnown(getState())).join(", ");
  return names && `${phrase("turn.limited")} ${names}`;
}

/** What to mind of an answer, unless it says so itself. @param {any} done */
export const caveat = ({ stopped, framing, outcome }) => (outcome === "answered_with_caveat" && !stopped && !framing?.opening ? phrase("facts.partly") : "");

/** All that the page says below an answer of how far it goes. @param {Turn} turn @returns {string[]} */
export const listCaveats = ({ done, cited, error, note }) => [
  ...(done?.warnings ?? []), error?.message, note?.text, done && cited.length && caveat(done), cited.some(({ since }) => since) && phrase("facts.since"),
].filter(Boolean);

/** An answer as Markdown, with what limits it and the list of its sources. @param {Turn} turn */
export function writeAnswer(turn) {
  const lines = listCited(turn).map((citation) => `[${citation.marker}] ${nameCited(citation)}`);
  return [nameScope(turn), turn.text, ...listCaveats(turn), lines.join("\n")].filter(Boolean).join("\n\n");
}

/** A whole conversation as Markdown. @param {string} title @param {Turn[]} turns */
export const writeConversation = (title, turns) => `${[`# ${title}`, ...turns.map((turn) => `## ${turn.question}\n\n${writeAnswer(turn)}`)].join("\n\n")}\n`;

/** All turns of a conversation. @param {string} id @returns {Promise<{title: string, turns: Turn[]}>} */
export async function readConversation(id) {
  const whole = { title: "", turns: /** @type {Turn[]} */ ([]) };
  let before = null;
  do {
    const part = await fetchJson(address(`/api/threads/${encodeURIComponent(id)}`, { limit: 100, before }));
    whole.title = part.title;
    whole.turns.unshift(...part.turns.map(restoreTurn));
    before = part.next;
  } while (before);
  await learnNames(whole.turns.flatMap(({ options }) => options.document_ids?.slice(0, MOST_NAMED) ?? []));
  return whole;
}

/** Saves a text as a file. @param {string} title @param {string} text @param {"md" | "html"} kind */
export function save(title, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind === "md" ? "text/markdown" : "text/html" }));
  link.download = `${title.replace(/[^\p{L}\p{N} .-]+/gu, "").slice(0, 80).trim() || "conversation"}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
