/** The conversations of the workspace, and the one that is shown. The address names it. */

import { address, ApiError, attempt, fetchJson, listLater, sending } from "./api.js";
import { keepDraft, takeDraft } from "./drafts.js";
import { phrase } from "./language.js";
import { limitAs } from "./library.js";
import { leaveRuns, takeUp } from "./runs.js";
import { getState, setState } from "./store.js";
import { announceChange } from "./tabs.js";
import { decode } from "./text.js";
import { isRunning, restoreTurn } from "./turns.js";

/** @param {string} id */
const path = (id) => `/api/threads/${encodeURIComponent(id)}`;

/** A conversation as the page holds it; `identity` stays the same object while it is shown.
 * @param {string | null} id @returns {Thread} */
const makeThread = (id) => ({
  id, identity: { id, workspace: getState().workspace }, title: "", turns: [], earlier: null, loading: id !== null, trouble: "",
});

/** What the address of the window names. */
export function readAddress() {
  // Where conversations were before they had addresses of their own.
  const old = new URLSearchParams(location.hash.slice(1)).get("thread");
  const named = /^\/t\/([\w.:-]+)$/.exec(location.pathname)?.[1];
  return {
    thread: old ?? named ?? null,
    /** An answer of it that a link leads to. */
    run: old ? null : decode(location.hash.slice(1)) || null,
    workspace: new URLSearchParams(location.search).get("workspace"),
  };
}

/** Shows a conversation, or a new one, and puts it into the address. @param {string | null} id */
export function goTo(id) {
  // The entry of open evidence gives way: Back leads to the conversation, not to its evidence.
  history[history.state?.evidence ? "replaceState" : "pushState"](null, "", address(id ? `/t/${encodeURIComponent(id)}` : "/"));
  return showThread(id);
}

/** Shows what the address names, without evidence. Another workspace is another page. */
export function showAddress() {
  const { thread, workspace } = readAddress();
  if (workspace !== getState().workspace) location.reload();
  else if (thread === getState().thread?.id) setState({ evidence: null });
  else showThread(thread);
}

/** From here on, questions go to the conversation with this id. @param {string | null} id
 * @param {Promise<unknown>} [known] what its earlier answers are shown with */
export async function showThread(id, known) {
  keepDraft(true);
  leaveRuns();
  limitAs();
  setState({ thread: makeThread(id), draft: takeDraft(id), evidence: null, tip: null, trouble: "", pane: "" });
  await known;
  if (id) await loadNewest();
}

/** Takes in what the server has of the conversation: at first all, later what another window added, and what became of
 * the sources of the last `most` answers. */
export async function loadNewest(most = 5) {
  const shown = getState().thread;
  if (!shown?.id) return;
  try {
    const saved = await fetchJson(address(path(shown.id), { limit: shown.loading ? 20 : most }));
    // A link may lead to an answer further up.
    const { run } = readAddress();
    while (shown.loading && run && saved.next && !saved.turns.some((turn) => turn.run_id === run)) {
      const before = await fetchJson(address(path(shown.id), { limit: 100, before: saved.next }));
      Object.assign(saved, { turns: [...before.turns, ...saved.turns], next: before.next });
    }
    const thread = getState().thread;
    // A question of this window that is being accepted may be among them; this is done again when it is.
    if (thread?.identity !== shown.identity || thread.turns.some(({ runId, state }) => !runId && state === "working")) return;
    const known = new Set(thread.turns.map(({ runId }) => runId));
    const arrived = saved.turns.filter((turn) => !known.has(turn.run_id));
    const added = arrived.map(restoreTurn);
    const now = new Map(saved.turns.map((turn) => [turn.run_id, turn]));
    /** @type {(string | null)[]} */
    const order = saved.turns.map((turn) => turn.run_id);
    const turns = thread.turns.map((turn) => tellSince(turn, now.get(turn.runId)));
    for (const turn of added) {
      const later = order.slice(order.indexOf(turn.runId) + 1);
      const place = turns.findIndex(({ runId }) => later.includes(runId));
      turns.splice(place < 0 ? turns.length : place, 0, turn);
    }
    if (thread.loading) limitAs(turns.at(-1)?.options);
    const earlier = thread.loading ? saved.next : thread.earlier;
    setState({ thread: { ...thread, title: saved.title, turns, earlier, loading: false, trouble: "" } });
    added.forEach((turn, place) => { if (isRunning(arrived[place])) takeUp(turn); });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const thread = getState().thread;
    // What is shown stays, whatever the server knows of it at the moment.
    if (thread?.identity !== shown.identity || !thread.loading) return;
    if (error.code === "unknown_thread" || error.status === 422) {
      history.replaceState(null, "", address("/"));
      setState({ thread: makeThread(null), trouble: phrase("conversations.unknown") });
    } else {
      setState({ thread: { ...thread, loading: false, trouble: phrase("conversations.not_shown", { reason: error.message }) } });
    }
  }
}

/** The turn with what became of its sources since. @param {Turn} turn @param {SavedTurn | undefined} saved */
function tellSince(turn, saved) {
  if (!saved || turn.state !== "over" || isRunning(saved)) return turn;
  const { cited, read } = restoreTurn(saved);
  const tell = (citations) => citations.map(({ since }) => since).join();
  return tell(cited) === tell(turn.cited) && tell(read) === tell(turn.read) ? turn : { ...turn, cited, read };
}

/** Tries again to show what could not be shown. */
export function loadAgain() {
  const { thread } = getState();
  if (!thread) return;
  setState({ thread: { ...thread, loading: true, trouble: "" } });
  loadNewest();
}

/** Prints the conversation that is shown, with all its turns. */
export async function printAll() {
  const shown = getState().thread;
  const rest = () => {
    const { thread } = getState();
    return thread?.identity === shown?.identity ? thread?.earlier : null;
  };
  for (let before; (before = rest()); ) {
    await loadEarlier(100);
    // The page says why nothing came.
    if (rest() === before) return;
  }
  if (getState().thread?.identity !== shown?.identity) return;
  // What was loaded is drawn with the next frame.
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  print();
}

/** Shows older turns of the conversation. @param {number} limit */
export async function loadEarlier(limit) {
  const { id, identity, earlier } = getState().thread ?? {};
  if (!id) return;
  await attempt(async () => {
    const saved = await fetchJson(address(path(id), { limit, before: earlier }));
    const thread = getState().thread;
    if (!thread || thread.identity !== identity) return;
    // Two clicks fetch the same turns twice.
    const known = new Set(thread.turns.map(({ runId }) => runId));
    const turns = saved.turns.map(restoreTurn).filter(({ runId }) => !known.has(runId));
    setState({ thread: { ...thread, turns: [...turns, ...thread.turns], earlier: saved.next } });
  });
}

let listing = 0;

/** Lists the conversations, newest first; `more` goes on where the list ends. */
export async function listThreads(more = false) {
  const number = (listing += 1);
  const { search, threads, threadsNext } = getState();
  const after = more ? threadsNext : null;
  try {
    const listed = await fetchJson(address("/api/threads", { mine: "true", q: search, limit: more ? 50 : Math.min(200, Math.max(50, threads.length)), after }));
    // Only the newest list counts: an older one may arrive later.
    if (number === listing) setState({ threads: more ? [...threads, ...listed.threads] : listed.threads, threadsNext: listed.next });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    console.debug(error);
  }
  if (getState().threads.some(({ running }) => running)) listLater(listThreads);
}

/** @param {string} id @param {string} title */
export async function renameThread(id, title) {
  await attempt(async () => {
    await fetchJson(address(path(id)), sending("PATCH", { title }));
    await listThreads();
  });
}

/** Erases a conversation for good. @param {string} id */
export async function deleteThread(id) {
  await attempt(async () => {
    await fetchJson(address(path(id)), { method: "DELETE" });
    if (getState().thread?.id === id) await goTo(null);
    announceChange(null);
  });
}

/** Keeps or withdraws what somebody thinks of an answer.
 * @param {string} runId @param {{rating: string, reason: string | null, comment: string} | null} feedback */
export const sendFeedback = (runId, feedback) =>
  fetchJson(address(`/api/runs/${encodeURIComponent(runId)}/feedback`), feedback ? sending("PUT", feedback) : { method: "DELETE" });
