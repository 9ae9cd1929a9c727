/** The documents of the workspace, and the files on their way into it. */

import { address, ApiError, attempt, fetchJson, listLater, upload } from "./api.js";
import { forgetTexts } from "./evidence.js";
import { phrase } from "./language.js";
import { getState, say, setState } from "./store.js";
import { announceChange } from "./tabs.js";
import { fileName } from "./text.js";

const POLL_MS = 1500;
/** Uploads at a time: the others wait here, where they cost nothing. */
const MOST_UPLOADS = 2;

const PAGE = 100;
/** As many as the server lists at once, and as a question may name. */
export const MOST = 500;

let listing = 0;

/** Lists the documents that the view shows; `more` goes on where the list ends. `quiet`: nobody asked for it. */
export async function listDocuments(more = false, quiet = false) {
  const number = (listing += 1);
  const { view, documents: before, library: last } = getState();
  const shown = before ?? [];
  try {
    const page = more ? { offset: last?.next, limit: PAGE } : { limit: Math.min(MOST, Math.max(PAGE, shown.length)) };
    const { documents: found, ...library } = await browse(page);
    // Only the newest list counts: an older one may arrive later.
    if (number !== listing) return;
    const documents = more ? [...shown, ...found] : found;
    setState({ documents, library });
    if (!isNarrowed(view)) setState({ view: { ...getState().view, root: library.folder } });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401 && !quiet) setState({ trouble: error.message });
  }
  if (getState().documents?.some(({ to_embed }) => to_embed)) listLater(listIndexed);
}

const listIndexed = () => listDocuments(false, true);

/** @param {Record<string, number | null | undefined>} page */
function browse(page) {
  const { words: q, folder, sort, values } = getState().view;
  // The form of the command line, in which JSON's texts, numbers and truth values are what they are.
  const where = Object.entries(values).map(([key, all]) => `${JSON.stringify(key)} in (${all.map((each) => JSON.stringify(each)).join(", ")})`);
  return fetchJson(address("/api/library", { q, folder, sort, where: where.join(" and "), ...page }));
}

/** @param {View} view */
export const isNarrowed = ({ words, folder, values }) => Boolean(words || folder || Object.keys(values).length);

/** Shows other documents of the library. @param {Partial<View>} changes */
export function changeView(changes) {
  setState({ view: { ...getState().view, ...changes } });
  return listDocuments();
}

/** Shows only documents with this value, or those with others again. @param {string} key @param {Scalar} value */
export function toggleValue(key, value) {
  const { [key]: chosen = [], ...others } = getState().view.values;
  const left = chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value];
  return changeView({ values: left.length ? { ...others, [key]: left } : others });
}

/** Lets answers come only from what the view shows: by its filter, which documents that come later pass too; words are
 * no filter, so the documents that have them are chosen. */
export async function askOnlyThese() {
  const { view, library } = getState();
  if (view.words) {
    await attempt(async () => {
      const { documents } = await browse({ limit: MOST });
      setState({ chosen: documents.map(({ id }) => id), only: null });
    });
    return;
  }
  const filter = Object.fromEntries(Object.entries(view.values).map(([key, values]) => [key, { in: values }]));
  const name = [view.folder.slice(view.root.length), ...Object.values(view.values).flat()].filter((each) => each !== "").join(", ");
  setState({ chosen: [], only: { filter: view.folder ? { ...filter, path: { prefix: view.folder } } : filter, name, view, documents: library?.total ?? 0 } });
}

export const askAll = () => setState({ chosen: [], only: null });

/** What a question is limited to. @returns {Pick<Options, "document_ids" | "filter">} */
export function limits() {
  const { chosen, only } = getState();
  return { document_ids: chosen.length ? chosen : null, filter: only?.filter ?? null };
}

/** The documents that the page knows: those of the list, and others that were chosen. @param {Pick<State, "documents" | "named">} state */
export const listKnown = ({ documents, named }) => [...(documents ?? []), ...named.filter(({ id }) => !documents?.some((each) => each.id === id))];

/** So many chosen documents are named. */
export const MOST_NAMED = 3;

/** What was asked for by its number alone, once. @type {Set<string>} */
const sought = new Set();

/** Learns the names of documents that stand further down than the list goes, or were deleted. @param {string[]} ids */
export async function learnNames(ids) {
  const { documents, thread } = getState();
  if (!documents) return;
  await Promise.all(ids.filter((each) => !sought.has(each) && !listKnown(getState()).some((one) => one.id === each)).map(async (id) => {
    sought.add(id);
    const item = await find(id);
    // What cited it knows what it was called.
    const cited = thread?.turns.flatMap(({ cited, read }) => [...cited, ...read]).find(({ document_id }) => document_id === id);
    const gone = { id, source: "", title: phrase("library.gone", { name: cited?.title ?? phrase("documents", { count: 1 }) }) };
    if (item !== undefined) setState({ named: [...getState().named, item ?? gone] });
  }));
}

/** The document; null where there is none, undefined where nobody can say. @param {string} id */
const find = (id) => fetchJson(address(`/api/documents/${encodeURIComponent(id)}`)).catch(({ status }) => (status === 404 ? null : undefined));

/** Limits the next questions to those of these documents that are still there. @param {string[]} ids */
export async function keepFound(ids) {
  await listDocuments();
  const found = await Promise.all(ids.map((id) => getState().documents?.some((each) => each.id === id) || find(id)));
  const chosen = ids.filter((_, place) => found[place] !== null);
  setState({ chosen });
  return chosen;
}

/** What an answer was limited to, in names where they are known. @param {Options} options @param {LibraryDocument[] | null} documents */
export function nameLimits({ document_ids, filter }, documents) {
  const known = (documents ?? []).filter(({ id }) => document_ids?.includes(id)).map(({ title, source }) => title || source);
  const others = (document_ids?.length ?? 0) - known.length;
  return [...known, ...(others > 0 ? [phrase("documents", { count: others })] : []), ...(filter ? [nameFilter(filter)] : [])];
}

/** @param {any} filter */
const nameFilter = (filter) => Object.values(filter).flatMap((each) => each?.in ?? each?.prefix ?? JSON.stringify(each)).join(", ");

/** Limits the next questions as this one was: the scope is the conversation's. @param {Options} [options] */
export function limitAs({ document_ids, filter } = { mode: "", document_ids: null }) {
  setState({ chosen: document_ids ?? [], only: filter ? { filter, name: nameFilter(filter), view: null, documents: null } : null });
}

/** Chooses a document to answer from, or lets it go. None chosen stands for all. @param {string} id */
export function chooseDocument(id) {
  const { chosen } = getState();
  setState({ only: null, chosen: chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id] });
}

/** @param {string} id */
export async function deleteDocument(id) {
  await attempt(async () => {
    await fetchJson(address(`/api/documents/${encodeURIComponent(id)}`), { method: "DELETE" });
    setState({ chosen: getState().chosen.filter((each) => each !== id), twins: getState().twins.filter((each) => each.id !== id && each.newer !== id) });
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
    const { ingestions } = await fetchJson(address("/api/ingestions", { limit: MOST }));
    // Of several that ask at the same time only the last goes on.
    if (number !== polls) return;
    setState({ ingestions });
    const ended = ingestions.filter((each) => each.ended_at && !before.find((one) => one.ingestion_id === each.ingestion_id)?.ended_at);
    if (ended.length && number > 1) {
      say(ended.map(({ source, state }) => `${source}: ${state}`).join(", "));
      await listDocuments();
      await renewOpen(ended.map(({ report }) => report?.document_id));
      const reports = ended.filter(({ ingestion_id, state }) => state === "done" && mine.has(ingestion_id)).map(({ report }) => report).filter((report) => report?.document_id);
      setState({ added: [...new Set([...getState().added, ...reports.map(({ document_id }) => document_id)])] });
      for (const report of reports) await findTwins(report);
      announceChange(null);
    }
    if (ingestions.some(({ ended_at }) => !ended_at)) polling = setTimeout(followIngestions, POLL_MS);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Whoever may not add files may not see those of others either.
    if (error.retryable && number === polls) polling = setTimeout(followIngestions, Math.max(3 * POLL_MS, 1000 * error.retryAfter));
  }
}

/** Shows what a document that is open says now, if it is one of these that were read anew. @param {(string | undefined)[]} read */
async function renewOpen(read) {
  const { evidence } = getState();
  if (!evidence || !("document" in evidence) || !read.includes(evidence.document)) return;
  forgetTexts();
  const item = await find(evidence.document);
  if (item && getState().evidence === evidence) setState({ evidence: { ...evidence, item } });
}

/** The files that this page has sent. @type {Set<string>} */
export const mine = new Set();

/** Looks for what a new document may be a newer version of: one of the same title or file name, from another place.
 * @param {{document_id: string, title: string, source: string}} added */
async function findTwins({ document_id, title, source }) {
  const query = address("/api/library", { q: title || fileName(source), limit: 20 });
  const { documents } = await fetchJson(query).catch(() => ({ documents: [] }));
  const old = documents.find((each) => each.id !== document_id && (each.title === title || fileName(each.source) === fileName(source)));
  if (old) keepTwins([...getState().twins, { ...old, newer: document_id }]);
}

/** Keeps open questions in this browser, which a reload would lose. @param {Twin[]} twins */
function keepTwins(twins) {
  setState({ twins });
  localStorage.setItem(address("twins"), JSON.stringify(twins.map(({ id, newer }) => [id, newer])));
}

/** Asks again what was left open, of documents that are both still there. */
export async function restoreTwins() {
  const pairs = JSON.parse(localStorage.getItem(address("twins")) ?? "[]");
  const found = await Promise.all(pairs.map(async ([id, newer]) => (await find(newer)) && { ...(await find(id)), newer }));
  const twins = found.filter((each) => each?.id);
  if (twins.length) setState({ twins, leftTab: "library" });
}

/** Lets a document that a newer one may replace go, or stay. @param {Twin} old @param {boolean} goes */
export async function settleTwin(old, goes) {
  if (goes) await deleteDocument(old.id);
  keepTwins(getState().twins.filter(({ id }) => id !== old.id));
}

/** Lets answers come only from the files that were just added. */
export const askAdded = () => setState({ chosen: getState().added, only: null, added: [], pane: "" });

/** When something was first seen under way, and how much of it was left then. @type {Map<string, {at: number, left: number}>} */
const seen = new Map();

/** Says how long the rest will take if it goes on as it went so far; nothing where that cannot be told yet.
 * @param {string} name of what is under way @param {number} left how much of it */
export function timeLeft(name, left) {
  const first = seen.get(name);
  if (!first || left > first.left) {
    seen.set(name, { at: Date.now(), left });
    return "";
  }
  const seconds = (Date.now() - first.at) / 1000;
  const minutes = (seconds / (first.left - left)) * left / 60;
  if (seconds < 5 || !Number.isFinite(minutes) || !left) return "";
  return minutes < 1 ? phrase("library.soon") : phrase("library.minutes", { count: Math.ceil(minutes) });
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
    // In a narrow window the files would go out of sight.
    pane: "left",
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
  try {
    const { documents: [refused], ingestions = [] } = await upload(address("/api/documents", { wait: "false" }), form, (share) => change({ share }));
    for (const { ingestion_id } of ingestions) mine.add(ingestion_id);
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
