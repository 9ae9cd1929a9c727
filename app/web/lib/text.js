/** Text of documents and models as people may see it. It is hostile: it becomes text nodes, never markup. */

import { language, phrase } from "./language.js";

/** Characters that turn text around, take no room or steer a terminal. Joiners and marks that scripts need stay. */
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** The text with every hidden character named where it stands. @param {unknown} text */
export function visible(text) {
  return String(text ?? "")
    .replace(/\r\n?/g, "\n")
    .replace(HIDDEN, (character) => `‹U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}›`);
}

/** The beginning of a text, for labels. @param {unknown} text */
export function short(text, most = 120) {
  const shown = visible(text);
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}

/** @param {number} number @param {string} word */
export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

/** @param {number} share */
export const percent = (share) => `${Math.round(100 * share)} %`;

const seconds = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** @param {number} ms */
export const duration = (ms) => (ms < 10 ? phrase("facts.under") : ms < 100 ? `${Math.ceil(ms)} ms` : `${seconds.format(ms / 1000)} s`);

/** How long ago, in the fewest words. @param {string} time */
export function ago(time) {
  const minutes = (Date.now() - Date.parse(time)) / 60_000;
  if (minutes < 1) return phrase("conversations.now");
  if (minutes < 60) return phrase("conversations.minutes", { count: Math.floor(minutes) });
  if (minutes < 24 * 60) return phrase("conversations.hours", { count: Math.floor(minutes / 60) });
  if (minutes < 7 * 24 * 60) return phrase("conversations.days", { count: Math.floor(minutes / 60 / 24) });
  return new Date(time).toLocaleDateString(language, { day: "numeric", month: "short", year: "numeric" });
}

const days = new Intl.RelativeTimeFormat(language, { numeric: "auto" });

/** The day of a time as people name it: today, yesterday, a day of this week, or its month. @param {string} time */
export function day(time) {
  const [then, now] = [new Date(time), new Date()].map((each) => each.setHours(0, 0, 0, 0));
  const ago = Math.round((now - then) / 86_400_000);
  return ago < 2 ? days.format(-ago, "day") : new Date(time).toLocaleDateString(language, ago < 7 ? { weekday: "long" } : { month: "long", year: "numeric" });
}

/** The file's name, of a path or an address. @param {string} source */
export const fileName = (source) => source.split(/[\\/]/).filter(Boolean).at(-1) ?? source;

/** The same in a few words: of each passage the last heading, and the page. @param {Citation} citation */
export const nearPlaces = (citation) =>
  [...new Set((citation.passages ?? [citation]).map(({ heading_path, page }) => place({ ...citation, heading_path: heading_path.slice(-1), page })))].filter(Boolean).join(", ");

/** Where a citation stands, in words, the page first: of one document it tells the most. @param {Citation} citation */
export function place(citation) {
  if (citation.outside) return phrase("evidence.outside");
  const path = citation.heading_path.filter((heading) => heading !== citation.title);
  return [citation.page ? phrase("page", { page: citation.page }) : "", path.join(" › ")].filter(Boolean).join(" · ");
}

/** Text of an address as it was before it was encoded; as it stands where it is no encoded text. @param {string} text */
export function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
