/** Requests to the service's public API. */

import { phrase } from "./language.js";
import { getState, setState } from "./store.js";

/** What the API says of an error. */
export class ApiError extends Error {
  /** @param {{code: string, message: string, retryable: boolean}} error */
  constructor({ code, message, retryable }, status = 0, retryAfter = 0, body = (null)) {
    super(message);
    Object.assign(this, { name: "ApiError" });
    this.code = code;
    this.retryable = retryable;
    this.status = status;
    /** Seconds. */
    this.retryAfter = retryAfter;
    this.body = body;
  }
}

const LATER_MS = 5000;

const UNREACHABLE = {
  code: "unreachable",
  retryable: true,
  message: phrase("server.unreachable"),
};

/** The address of a resource in the workspace that is shown.
 * @param {string} path @param {Record<string, string | number | null | undefined>} [query] */
export function address(path, query = {}) {
  const all = { ...query, workspace: getState().workspace };
  const given = Object.entries(all).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return search.size ? `${path}?${search}` : path;
}

/** What the server answered. Throws an `ApiError`. @param {string} path @param {RequestInit} [options] */
export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") throw error;
    throw new ApiError(navigator.onLine ? UNREACHABLE : { ...UNREACHABLE, message: phrase("server.offline") });
  }
  if (response.ok) return response;
  throw await readError(response);
}

/** @param {Response} response */
async function readError(response) {
  const { status } = response;
  const body = await response.json().catch(() => ({}));
  const plain = { code: `http_${status}`, retryable: status >= 500, message: phrase("server.status", { status }) };
  if (status === 401) setState({ signedOut: true });
  const retryAfter = status === 503 || status === 429 ? Number(response.headers.get("Retry-After")) : 0;
  return new ApiError(body.error ?? plain, status, retryAfter, body);
}

/** The JSON that the server answered, null where it has none. @param {string} path @param {RequestInit} [options] */
export async function fetchJson(path, options) {
  const response = await request(path, options);
  return response.status === 204 ? null : response.json();
}

/** Options of a request with a JSON body. @param {string} method @param {unknown} body */
export const sending = (method, body) => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

/** Sends one file, and tells how much of it is on its way.
 * @param {string} path @param {FormData} form @param {(share: number) => void} tell @returns {Promise<any>} */
export function upload(path, form, tell) {
  return new Promise((resolve, reject) => {
    const sender = new XMLHttpRequest();
    sender.open("POST", path);
    sender.responseType = "json";
    sender.upload.onprogress = (event) => tell(event.total ? event.loaded / event.total : 0);
    sender.onerror = () => reject(new ApiError(UNREACHABLE));
    sender.onload = () => {
      const { status, response } = sender, message = phrase(status === 413 ? "server.oversized" : "server.status", { status });
      if (status === 401) setState({ signedOut: true });
      if (status < 400 || response?.documents) resolve(response);
      else reject(new ApiError(response?.error ?? { ...UNREACHABLE, message }));
    };
    sender.send(form);
  });
}

/** @type {Map<() => unknown, ReturnType<typeof setTimeout>>} */
const timers = new Map();

/** Lists again in a while what is still under way, where somebody looks. @param {() => unknown} list */
export function listLater(list) {
  clearTimeout(timers.get(list));
  timers.set(list, setTimeout(() => (document.hidden ? listLater(list) : list()), LATER_MS));
}

/** Does something, and says so where it fails. @param {() => Promise<unknown>} act @param {(message: string) => void} [tell] */
export async function attempt(act, tell = (trouble) => setState({ trouble })) {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    tell(error.message);
  }
}
