/** A question and its answer, made from its run's events or from what the server keeps: a reload changes nothing. */

import { phrase } from "./language.js";

let made = 0;

/** @param {string} question @param {Options} options @param {string | null} [runId]
 * @returns {Turn} */
export const makeTurn = (question, options, runId = null) => ({
  key: `turn-${++made}`, runId, question, options, state: "working", waiting: "", step: "", text: "", cited: [], read: [],
  steps: [], tools: [], corrections: [], restarted: "", verification: null, done: null, error: null, note: null,
  feedback: null, stopping: false,
});

/** A turn as the server gives it back. One that has not ended starts empty: its events follow.
 * @param {SavedTurn} saved @returns {Turn} */
export function restoreTurn(saved) {
  const turn = makeTurn(saved.question, { mode: saved.mode, document_ids: saved.document_ids, filter: saved.filter ?? null }, saved.run_id);
  if (isRunning(saved)) return turn;
  const filled = { ...turn, feedback: saved.feedback, read: saved.sources ?? [], steps: (saved.steps ?? []).map(({ node }) => node), tools: saved.tools ?? [] };
  filled.corrections = (saved.corrections ?? []).filter(({ reason }) => reason !== "restart");
  // What a run had written when it failed.
  if (saved.ended?.event === "error" && filled.corrections.at(-1)?.reason === saved.ended.code) filled.text = filled.corrections.pop()?.withdrawn ?? "";
  return saved.ended ? applyEvent(filled, { ...saved.ended, type: saved.ended.event }) : breakOff(filled);
}

/** @param {{state: string}} saved */
export const isRunning = ({ state }) => state === "queued" || state === "running";

/** The turn after one more event. Unknown events change nothing: a newer server may send more.
 * @param {Turn} turn @param {any} event @returns {Turn} */
export function applyEvent(turn, event) {
  const heard = { ...turn, waiting: "" };
  switch (event.type) {
    case "thinking":
      return { ...heard, step: event.step, steps: [...turn.steps, event.step] };
    case "tool_call":
      return { ...heard, tools: [...turn.tools, { call_id: event.call_id, name: event.name, arguments: event.arguments }] };
    case "tool_result":
      return { ...heard, tools: turn.tools.map((tool) => (tool.call_id === event.call_id ? { ...tool, text: event.text, sources: event.sources.length } : tool)) };
    case "sources":
      return { ...heard, read: event.citations };
    case "waiting":
      return { ...turn, waiting: phrase("turn.quiet") };
    case "content":
      return { ...heard, text: turn.text + event.token };
    case "citation":
      return { ...heard, cited: [...turn.cited.filter(({ marker }) => marker !== event.citation.marker), event.citation] };
    case "verification":
      return { ...heard, verification: event };
    case "correction":
      return event.reason === "restart" ? restart(heard, event) : correct(heard, event);
    case "done":
      return finish(heard, event);
    case "error":
      return { ...heard, state: "over", error: event };
    default:
      return heard;
  }
}

/** What was shown so far is void; the event's answer, often nothing, is where the answer goes on.
 * @param {Turn} turn @param {any} event */
function restart(turn, { answer, citations }) {
  const restarted = phrase(answer ? "turn.goes_on" : "turn.starts_again");
  return { ...turn, text: answer, cited: citations, read: [], steps: [], tools: [], corrections: [], verification: null, restarted };
}

/** @param {Turn} turn @param {any} event */
function correct(turn, { reason, answer, citations }) {
  return { ...turn, corrections: [...turn.corrections, { reason, withdrawn: turn.text }], text: answer, cited: citations };
}

/** @param {Turn} turn @param {any} done @returns {Turn} */
function finish(turn, done) {
  return {
    ...turn,
    state: "over",
    restarted: "",
    text: done.answer,
    cited: done.citations ?? [],
    verification: done.verification?.claims?.length ? done.verification : turn.verification,
    done,
    note: done.stopped ? { text: phrase("turn.stopped"), label: phrase("ask_again") } : null,
  };
}

/** Nobody knows any more how the answer went on. @param {Turn} turn @returns {Turn} */
export function breakOff(turn) {
  const note = { text: phrase("turn.broken_off"), label: phrase("try_again"), bad: true };
  return { ...turn, state: "over", waiting: "", note };
}

/** The turn's sources in order; those that the answer cites are `cited`. @param {Turn} turn */
export function listSources({ cited, read }) {
  const all = new Map(read.map((citation) => [citation.marker, { citation, cited: false }]));
  for (const citation of cited) all.set(citation.marker, { citation: { ...all.get(citation.marker)?.citation, ...citation }, cited: true });
  return [...all.values()].sort((one, other) => one.citation.marker - other.citation.marker);
}
