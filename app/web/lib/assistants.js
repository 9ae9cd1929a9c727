/** The assistants of the workspace: modes that its team has made. */

import { address, fetchJson, sending } from "./api.js";
import { getState, setState, useStore } from "./store.js";

/** What can be named as a mode, for a component; `also` one that is named already. @param {string} [also] */
export function useModes(also) {
  const modes = useStore((state) => state.modes);
  const assistants = useStore((state) => state.assistants);
  return [...new Set([...modes, ...assistants.map(({ name }) => name), ...(also ? [also] : [])])];
}

export async function listAssistants() {
  // Without them, the deployment's modes can be chosen all the same.
  const found = await fetchJson(address("/api/assistants")).catch(() => null);
  if (found) setState({ assistants: found.assistants });
}

/** Makes an assistant, or a new version of one, and chooses it. @param {Assistant | null} item @param {object} fields */
export async function saveAssistant(item, fields) {
  const saved = await fetchJson(locate(item), sending(item ? "PUT" : "POST", fields));
  await listAssistants();
  setState({ mode: saved.name });
}

/** @param {Assistant} item */
export async function deleteAssistant(item) {
  await fetchJson(locate(item), { method: "DELETE" });
  await listAssistants();
  const { mode, modes } = getState();
  if (mode === item.name) setState({ mode: modes.includes("standard") ? "standard" : modes[0] });
}

/** @param {Assistant | null} item */
const locate = (item) => address(item ? `/api/assistants/${encodeURIComponent(item.assistant_id)}` : "/api/assistants");
