/** Windows of one browser tell each other what has changed. */

const channel = new BroadcastChannel("askgraph");
/** @type {(thread: string | null) => void} */
let listen = () => {};

/** @param {string | null} thread the conversation that has changed; null: the library */
export function announceChange(thread) {
  channel.postMessage({ thread });
  listen(thread);
}

/** Calls `listener` with what has changed, here or in another window. @param {(thread: string | null, elsewhere: boolean) => void} listener */
export function onChange(listener) {
  listen = (thread) => listener(thread, false);
  channel.onmessage = ({ data }) => listener(data.thread, true);
}
