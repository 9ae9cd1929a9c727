/** Questions that the library can answer: what a section of a document is about. */

import { readBlocks } from "./evidence.js";
import { phrase } from "./language.js";

/** Larger documents are not read for the sake of a question. */
const MOST_CHARACTERS = 60_000;
const LONGEST_HEADING = 50;

/** The topics of a document, in order: its sections, but for what its title says already.
 * @param {LibraryDocument} document @returns {Promise<Topic[]>} */
export async function readTopics({ id, title, characters }) {
  if (characters > MOST_CHARACTERS) return [];
  const { blocks } = await readBlocks(id);
  const headings = blocks.filter(({ kind }) => kind === "heading").map(({ text }) => text.replace(/^#+\s*/, ""));
  const telling = headings.filter((each, place) => place && each.length <= LONGEST_HEADING && !title.toLowerCase().includes(each.toLowerCase()));
  return [...new Set(telling)].map((name) => makeTopic(id, name, title));
}

/** @param {string} document @param {string} name @param {string} of @returns {Topic} */
export const makeTopic = (document, name, of) => ({ question: phrase("welcome.about", { title: name }), name, of, document });
