/** Asking, and holding on to an answer: over broken connections and restarts, until it ends or is stopped. */

import { address, ApiError, request, sending } from "./api.js";
import { addDraft, takeDraft } from "./drafts.js";
import { isCut, readEvents, SILENCE_SECONDS } from "./events.js";
import { leaveEvidence } from "./evidence.js";
import { phrase } from "./language.js";
import { getState, say, setState } from "./store.js";
import { announceChange } from "./tabs.js";
import { count } from "./text.js";
import { applyEvent, breakOff, makeTurn } from "./turns.js";

/** For how long a question that is turned away for now is asked again. */
const PATIENCE_SECONDS = 120;
/** How often a connection is tried without an event to show for it: with the pauses between, for about as long. */
const MOST_FAILURES = 15;
/** Questions of a conversation that are not answered yet, at most: a browser keeps six connections to a server. */
export const MOST_RUNS = 4;

/** @typedef {{
 *   key: string, id: string | null, thread: ThreadIdentity, question: string,
 *   options: Options, last: string | null, leaving: AbortController, left: boolean,
 *   accepted?: Promise<void>,
 * }} Run */

/** Those of the conversation that is shown, oldest first: the server answers one after the other. @type {Run[]} */
let runs = [];

class Left extends Error {}

/** @param {string} key @param {(turn: Turn) => Turn} change */
export function changeTurn(key, change) {
  const { thread } = getState();
  const turn = thread?.turns.find((each) => each.key === key);
  if (!thread || !turn) return;
  setState({ thread: { ...thread, turns: thread.turns.map((each) => (each === turn ? change(turn) : each)) } });
}

/** @param {string} key @param {string} waiting */
function wait(key, waiting) {
  say(waiting);
  changeTurn(key, (turn) => ({ ...turn, waiting }));
}

/** Asks a question in the conversation that is shown; `replaced` is the turn that it is instead of.
 * @param {string} question @param {Options} options @param {string} [replaced] */
export function ask(question, options, replaced) {
  const { thread } = getState();
  if (!thread || runs.length >= MOST_RUNS) return false;
  leaveEvidence();
  const before = runs.at(-1);
  const turn = { ...makeTurn(question, options), waiting: phrase(before ? "runs.waiting" : "runs.asking") };
  const others = thread.turns.filter(({ key }) => key !== replaced);
  setState({ thread: { ...thread, turns: [...others, turn] }, trouble: "" });
  const run = makeRun(turn, thread.identity);
  const accepted = accept(run, before?.accepted);
  run.accepted = accepted.then(() => {}, () => {});
  attend(run, accepted);
  return true;
}

/** Follows an answer that is being given already. @param {Turn} turn */
export function takeUp(turn) {
  const { thread } = getState();
  if (!thread) return;
  wait(turn.key, phrase("runs.reconnecting"));
  attend(makeRun(turn, thread.identity), null);
}

/** @param {Turn} turn @param {ThreadIdentity} thread @returns {Run} */
function makeRun({ key, runId, question, options }, thread) {
  return { key, id: runId, thread, question, options, last: null, leaving: new AbortController(), left: false };
}

/** Shows nothing more of the runs: another conversation takes their place. They go on without this page. */
export function leaveRuns() {
  for (const run of runs) {
    run.left = true;
    if (run.id) run.leaving.abort(new Left());
  }
  runs = [];
}

/** Follows a run to its end. `accepted` is the response that its question will have; null where it had one before.
 * @param {Run} run @param {Promise<Response> | null} accepted */
async function attend(run, accepted) {
  runs.push(run);
  try {
    await follow(run, await accepted);
  } catch (error) {
    if (run.left) {
      if (run.id) return;
      addDraft(run.thread.id, run.question);
      setState({ trouble: phrase("runs.not_asked", { question: run.question, reason: /** @type {Error} */ (error).message }) });
      return;
    }
    const { signal } = run.leaving;
    if (signal.aborted) changeTurn(run.key, (turn) => ({ ...turn, state: "over", waiting: "", note: { text: String(signal.reason), label: phrase("ask_again") } }));
    else if (error instanceof ApiError && error.code === "unknown_run") changeTurn(run.key, breakOff);
    else if (error instanceof ApiError) changeTurn(run.key, (turn) => applyEvent(turn, { type: "error", code: error.code, message: error.message, retryable: error.retryable }));
    else throw error;
  } finally {
    runs = runs.filter((each) => each !== run);
    announceChange(run.thread.id);
  }
}

/** Asks; again, for a while, where the server is about to end or to start.
 * @param {Run} run @param {Promise<void> | undefined} before */
async function accept(run, before) {
  // The first question of a conversation gives it its name.
  await before;
  const { question, options, thread, leaving: { signal } } = run;
  for (const started = Date.now(); ; ) {
    try {
      // The server would begin anew where the conversation was deleted meanwhile, without what is shown above.
      if (thread.id) await request(address(`/api/threads/${encodeURIComponent(thread.id)}`, { limit: 1 }), { signal });
      const body = { question, ...options, thread_id: thread.id, workspace: thread.workspace };
      const { headers, ...rest } = sending("POST", body);
      const response = await request("/api/chat", { ...rest, signal, headers: { ...headers, Accept: "text/event-stream" } });
      run.id = response.headers.get("X-Run-Id");
      thread.id ??= response.headers.get("X-Thread-Id");
      nameThread(run);
      announceChange(thread.id);
      if (getState().thread?.turns.find(({ key }) => key === run.key)?.stopping) sendStop(run);
      return response;
    } catch (error) {
      if (!(error instanceof ApiError && error.retryAfter) || Date.now() - started > 1000 * PATIENCE_SECONDS) throw error;
      wait(run.key, phrase("runs.again", { reason: error.message }));
      await pause(error.retryAfter, signal);
    }
  }
}

/** Gives the conversation that is shown the id that its first question got. @param {Run} run */
function nameThread(run) {
  changeTurn(run.key, (turn) => ({ ...turn, runId: run.id }));
  const { thread } = getState();
  if (thread?.identity !== run.thread || thread.id === run.thread.id) return;
  takeDraft(null);
  setState({ thread: { ...thread, id: run.thread.id } });
  const { state } = history;
  history.replaceState(null, "", address(`/t/${encodeURIComponent(run.thread.id ?? "")}`));
  // Below an open document stands the page from before the question: closing it would lead there.
  if (state?.evidence) history.pushState(state, "");
}

/** Shows a run's events, on as many connections as it takes, each from where the one before it broke off.
 * @param {Run} run @param {Response | null} response */
async function follow(run, response) {
  const { signal } = run.leaving;
  for (let failures = 0; ; failures += 1) {
    let delay = Math.min(10, 0.5 * 2 ** failures);
    try {
      if (run.left) return void response?.body?.cancel();
      const stream = response ?? (await reconnect(run));
      if (failures) wait(run.key, phrase("runs.connected"));
      for await (const event of readEvents(stream)) {
        if (run.left) return;
        if (isCut(event)) break;
        // What the server retells of a run whose stream has expired has no id.
        run.last = event.id || run.last;
        failures = 0;
        changeTurn(run.key, (turn) => applyEvent(turn, event));
        if (event.type === "correction" && event.reason !== "restart") say(phrase("turn.corrected"));
        if (event.type === "done") say(event.citations?.length ? phrase("runs.answered", { count: event.citations.length }) : phrase("runs.without_sources"));
        if (event.type === "done" || event.type === "error") return;
      }
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && !error.retryable)) throw error;
      console.debug(error);
      delay = Math.max(delay, error instanceof ApiError ? error.retryAfter : 0);
    }
    response = null;
    if (failures === MOST_FAILURES) return lose(run);
    // What the page says of the network is enough.
    wait(run.key, navigator.onLine ? phrase("runs.broke") : "");
    await pause(delay, signal);
  }
}

/** The server stays away. What it has of the answer is not lost. @param {Run} run */
function lose(run) {
  const text = phrase("runs.lost");
  const resume = () => {
    changeTurn(run.key, (turn) => ({ ...turn, state: "working", note: null, waiting: phrase("runs.reconnecting") }));
    attend(run, null);
  };
  changeTurn(run.key, (turn) => ({ ...turn, state: "over", waiting: "", note: { text, bad: true, label: phrase("runs.reconnect"), act: resume } }));
}

/** @param {Run} run */
async function reconnect(run) {
  const hung = new AbortController();
  const timer = setTimeout(() => hung.abort(), 1000 * SILENCE_SECONDS);
  try {
    return await request(address(`/api/runs/${encodeURIComponent(run.id ?? "")}/events`), {
      signal: AbortSignal.any([run.leaving.signal, hung.signal]),
      headers: run.last ? { "Last-Event-ID": run.last } : {},
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Ends one answer; those of other questions go on. @param {string} key */
export function stopAnswer(key) {
  const run = runs.find((each) => each.key === key);
  if (!run) return;
  changeTurn(key, (turn) => ({ ...turn, stopping: true }));
  if (run.id) sendStop(run);
  // A question that was turned away for now. One that is just being accepted is stopped as soon as it has an id.
  else setTimeout(() => { if (!run.id) run.leaving.abort(phrase("runs.stopped")); }, 2000);
}

/** @param {Run} run */
async function sendStop(run) {
  try {
    await request(address(`/api/runs/${encodeURIComponent(run.id ?? "")}/cancel`), {
      method: "POST", keepalive: true, signal: AbortSignal.timeout(10_000),
    });
  } catch (error) {
    run.leaving.abort(phrase("runs.not_stopped", { reason: /** @type {Error} */ (error).message }));
  }
}

/** Waits; not any longer once the network is back, and fails when `signal` is aborted.
 * @param {number} seconds @param {AbortSignal} signal @returns {Promise<void>} */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    /** @param {() => void} settle */
    const end = (settle) => () => {
      clearTimeout(timer);
      removeEventListener("online", back);
      signal.removeEventListener("abort", left);
      settle();
    };
    const back = end(resolve);
    const left = end(() => reject(signal.reason));
    const timer = setTimeout(back, 1000 * seconds);
    addEventListener("online", back);
    signal.addEventListener("abort", left);
    if (signal.aborted) left();
  });
}
