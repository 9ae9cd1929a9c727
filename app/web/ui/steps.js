import { fetchJson } from "../lib/api.js";

/** What each step of a run does, in words. Filled by `loadSteps`. @type {Record<string, string>} */
export const STEPS = {};

/** Learn the steps of the server's graph, and return its drawing; null where the server does not say. */
export async function loadSteps() {
  const graph = await fetchJson("/api/graph?format=json").catch(() => null);
  for (const { name, label } of graph?.steps ?? []) STEPS[name] = label;
  return graph;
}
