/** What somebody has written and not asked, of each conversation: kept in this window, over a reload and other pages. */

import { address } from "./api.js";
import { getState, setState } from "./store.js";

/** @param {string | null} id */
const name = (id) => address(`draft/${id ?? ""}`);

/** @param {string | null} id @param {string[]} texts */
const write = (id, texts) => sessionStorage.setItem(name(id), texts.filter(Boolean).join("\n\n"));

/** Keeps what stands in the box, and questions that did not reach the server.
 * @param {boolean} [left] the page stays: what is on its way goes on */
export function keepDraft(left = false) {
  const { draft, thread } = getState();
  const unsent = thread?.turns.filter(({ runId, state }) => !runId && !(left && state === "working")) ?? [];
  if (thread) write(thread.id, [...unsent.map(({ question }) => question), draft]);
}

/** Gives out what was kept, once. @param {string | null} id */
export function takeDraft(id) {
  const kept = sessionStorage.getItem(name(id)) ?? "";
  sessionStorage.removeItem(name(id));
  return kept;
}

/** Keeps a question of a conversation that was left before it could be asked. @param {string | null} id @param {string} question */
export function addDraft(id, question) {
  if (getState().thread?.id === id) setState({ draft: [question, getState().draft].filter(Boolean).join("\n\n") });
  else write(id, [question, sessionStorage.getItem(name(id)) ?? ""]);
}
