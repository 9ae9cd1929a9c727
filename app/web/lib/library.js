/** The documents of the workspace, and the files on their way into it. */

import { address, ApiError, attempt, fetchJson, upload } from "./api.js";
import { getState, say, setState } from "./store.js";
import { announceChange } from "./tabs.js";

const POLL_MS = 1500;
/** Uploads at a time: the others wait here, where they cost nothing. */
const MOST_UPLOADS = 2;

export async function listDocuments() {
  try {
    const { documents } = await fetchJson(address("/api/documents"));
    const known = new Set(documents.map(({ id }) => id));
    setState({ documents, chosen: getState().chosen.filter((id) => known.has(id)) });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401) setState({ trouble: error.message });
  }
}

/** Chooses a document to answer from, or lets it go. None chosen stands for all. @param {string} id */
export function chooseDocument(id) {
  const { chosen } = getState();
  setState({ chosen: chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id] });
}

/** @param {string} id */
export async function deleteDocument(id) {
  await attempt(async () => {
    await fetchJson(address(`/api/documents/${encodeURIComponent(id)}`), { method: "DELETE" });
    await listDocuments();
    announceChange(null);
  });
}

/** @type {number | undefined} */
let polling;
let polls = 0;

/** Follows the files that are being read until none is left. Goes on where another window, or a reload, left off. */
export async function followIngestions() {
  clearTimeout(polling);
  const before = getState().ingestions;
  const number = (polls += 1);
  try {
    const { ingestions } = await fetchJson(address("/api/ingestions", { limit: 100 }));
    // Of several that ask at the same time only the last goes on.
    if (number !== polls) return;
    setState({ ingestions });
    const ended = ingestions.filter((each) => each.ended_at && !before.find((one) => one.ingestion_id === each.ingestion_id)?.ended_at);
    if (ended.length && number > 1) {
      say(ended.map(({ source, state }) => `${source}: ${state}`).join(", "));
      await listDocuments();
    }
    if (ingestions.some(({ ended_at }) => !ended_at)) polling = setTimeout(followIngestions, POLL_MS);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Whoever may not add files may not see those of others either.
    if (error.retryable && number === polls) polling = setTimeout(followIngestions, Math.max(3 * POLL_MS, 1000 * error.retryAfter));
  }
}

/** @param {string} id */
export async function cancelIngestion(id) {
  await attempt(() => fetchJson(address(`/api/ingestions/${encodeURIComponent(id)}`), { method: "DELETE" }));
  await followIngestions();
}

let sent = 0;
/** @type {{key: number, file: File}[]} */
const waiting = [];
let sending = 0;

/** Sends files, one request each, so that one that fails stops no other. They are read later. @param {Iterable<File>} files */
export function addFiles(files) {
  const rows = [...files].map((file) => ({ key: (sent += 1), file }));
  setState({
    uploads: [...rows.map(({ key, file }) => ({ key, name: file.name, share: 0, error: "" })), ...getState().uploads.filter(({ error }) => !error)],
    leftTab: "library",
  });
  waiting.push(...rows);
  while (sending < MOST_UPLOADS && waiting.length) sendNext();
}

async function sendNext() {
  const next = waiting.shift();
  if (!next) return;
  sending += 1;
  const { key, file } = next;
  /** @param {{share?: number, error?: string}} change */
  const change = (change) => setState({ uploads: getState().uploads.map((each) => (each.key === key ? { ...each, ...change } : each)) });
  const form = new FormData();
  form.append("files", file);
  form.append("metadata", JSON.stringify({ file_date: new Date(file.lastModified).toISOString().slice(0, 10) }));
  const { workspace } = getState();
  const query = new URLSearchParams({ wait: "false", ...(workspace ? { workspace } : {}) });
  try {
    const { documents } = await upload(`/api/documents?${query}`, form, (share) => change({ share }));
    const [refused] = documents;
    if (refused) change({ error: refused.error });
    else dismissUpload(key);
    await followIngestions();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    change({ error: error.message });
  } finally {
    sending -= 1;
    sendNext();
  }
}

/** @param {number} key */
export const dismissUpload = (key) => setState({ uploads: getState().uploads.filter((each) => each.key !== key) });

/** Lists the file no more. The server forgets it within an hour. @param {string} id */
export const dismissIngestion = (id) => setState({ dismissed: [...getState().dismissed, id] });
