/** Questions that the library can answer: what a section of a document is about. */

import { readBlocks } from "./evidence.js";

/** Larger documents are not read for the sake of a question. */
const MOST_CHARACTERS = 60_000;
const LONGEST_HEADING = 50;

/** The topics of a document: its sections with how much they say, but for those that its title says already, and for
 * dates and versions, which say nothing to who does not know them. @param {LibraryDocument} document @returns {Promise<Topic[]>} */
export async function readTopics({ id, title, characters }) {
  if (characters > MOST_CHARACTERS) return [];
  const { blocks } = await readBlocks(id);
  const topics = blocks.flatMap(({ kind, text, start }, place) => {
    if (kind !== "heading" || !place) return [];
    const next = blocks.slice(place + 1).find((each) => each.kind === "heading");
    // A heading without its mark and number.
    return [{ name: text.replace(/^#*\s*(\d+(\.\d+)*\.?\s+)?/, ""), of: title, size: (next?.start ?? characters) - start }];
  });
  return topics.filter(({ name }) => name.length <= LONGEST_HEADING && !/\d/.test(name) && !title.toLowerCase().includes(name.toLowerCase()));
}
