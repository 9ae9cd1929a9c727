/** The page's state: one plain object. Changes replace what they change, so that `===` tells what is new. */

import { useLayoutEffect, useReducer, useRef } from "../vendor/preact-htm.js";

/** @type {State} */
let state = {
  caller: null, signedOut: false, trouble: "", status: "", offline: false, workspace: null, workspaces: [],
  modes: ["standard"], mode: "standard", assistants: [], edited: null, hasModel: true,
  draft: "", threads: [], threadsNext: null, search: "", thread: null,
  documents: null, library: null, view: { words: "", folder: "", root: "", sort: "name", values: {} },
  chosen: [], named: [], only: null, ingestions: [], uploads: [], dismissed: [], added: [], twins: [],
  evidence: null, wide: false, tip: null, pane: "", leftTab: "conversations",
};

/** @type {Set<() => void>} */
const listeners = new Set();
let planned = false;

export const getState = () => state;

/** Changes the state; the page follows with the next frame, however many changes come before it.
 * @param {Partial<State>} changes */
export function setState(changes) {
  state = { ...state, ...changes };
  if (planned) return;
  planned = true;
  // A window that nobody sees has no frames.
  const timer = setTimeout(tell, 100);
  const frame = requestAnimationFrame(tell);
  function tell() {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    planned = false;
    for (const listener of [...listeners]) listener();
  }
}

/** Says something to people who listen to the page. @param {string} status */
export const say = (status) => setState({ status });

/** A part of the state for a component, which is drawn again when that part changes.
 * @template T @param {(state: State) => T} select @returns {T} */
export function useStore(select) {
  const [, again] = useReducer((n) => n + 1, 0);
  const value = select(state);
  const latest = useRef({ select, value });
  latest.current = { select, value };
  useLayoutEffect(() => {
    const compare = () => {
      if (!Object.is(latest.current.select(state), latest.current.value)) again(null);
    };
    listeners.add(compare);
    compare();
    return () => void listeners.delete(compare);
  }, []);
  return value;
}
