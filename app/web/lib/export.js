/** Conversations for elsewhere: as a file, and as text with sources. */

import { address, attempt, fetchJson } from "./api.js";
import { fileName, place } from "./text.js";
import { listSources, restoreTurn } from "./turns.js";

/** An answer as Markdown, with the list of its sources. @param {Turn} turn */
export function writeAnswer(turn) {
  const cited = listSources(turn).filter((source) => source.cited);
  const lines = cited.map(({ citation }) => [`[${citation.marker}] ${citation.title}`, place(citation), fileName(citation.source ?? "")].filter(Boolean).join(", "));
  return [turn.text, lines.join("\n")].filter(Boolean).join("\n\n");
}

/** Saves a whole conversation as Markdown. @param {string} id */
export function download(id) {
  return attempt(async () => {
    let [title, before] = ["", null];
    /** @type {Turn[]} */
    const turns = [];
    do {
      const part = await fetchJson(address(`/api/threads/${encodeURIComponent(id)}`, { limit: 100, before }));
      title = part.title;
      before = part.next;
      turns.unshift(...part.turns.map(restoreTurn));
    } while (before);
    const text = [`# ${title}`, ...turns.map((turn) => `## ${turn.question}\n\n${writeAnswer(turn)}`)].join("\n\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/markdown" }));
    link.download = `${title.replace(/[^\p{L}\p{N} .-]+/gu, "").slice(0, 80).trim() || "conversation"}.md`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
}
