/** Questions that the library can answer: what a section of a document is about. */

import { readBlocks } from "./evidence.js";
import { phrase } from "./language.js";

/** Larger documents are not read for the sake of a question. */
const MOST_CHARACTERS = 60_000;
const LONGEST_HEADING = 50;

/** The topics of a document, in order: its sections, but for those that its title says already, and for dates and
 * versions, which say nothing to who does not know them.
 * @param {LibraryDocument} document @returns {Promise<Topic[]>} */
export async function readTopics({ id, title, characters }) {
  if (characters > MOST_CHARACTERS) return [];
  const { blocks } = await readBlocks(id);
  const headings = blocks.filter(({ kind }) => kind === "heading").map(({ text }) => bare(text));
  const telling = headings.filter((each, place) => place && each.length <= LONGEST_HEADING && !/\d/.test(each) && !title.toLowerCase().includes(each.toLowerCase()));
  return [...new Set(telling)].map((name) => makeTopic(id, name, title));
}

/** @param {string} document @param {string} name @param {string} of @returns {Topic} */
export const makeTopic = (document, name, of) => ({ question: phrase("welcome.about", { title: name }), name, of, document });

/** A heading without its mark and number. @param {string} heading */
const bare = (heading) => heading.replace(/^#*\s*(\d+(\.\d+)*\.?\s+)?/, "");

/** What stands beside the passages that an answer cites first: the next sections of that document, and those before
 * where it ends. @param {Citation[]} cited @param {LibraryDocument[] | null} documents @param {number} most */
export async function readOn(cited, documents, most) {
  const document = documents?.find(({ id }) => id === cited[0]?.document_id);
  if (!document || cited[0].since) return [];
  const topics = await readTopics(document);
  const read = new Set(cited.flatMap((citation) => [citation, ...(citation.passages ?? [])]).flatMap(({ heading_path }) => heading_path.map(bare)));
  const at = topics.findLastIndex(({ name }) => read.has(name));
  return [...topics.slice(at + 1), ...topics.slice(0, Math.max(0, at)).reverse()].filter(({ name }) => !read.has(name)).slice(0, most);
}
