/** Starts the page. */

import { html, render } from "./vendor/preact-htm.js";
import { address, fetchJson } from "./lib/api.js";
import { listAssistants } from "./lib/assistants.js";
import { listThreads, loadNewest, readAddress, showAddress, showThread } from "./lib/conversations.js";
import { keepDraft } from "./lib/drafts.js";
import { language } from "./lib/language.js";
import { followIngestions, listDocuments, restoreTwins } from "./lib/library.js";
import { getState, setState } from "./lib/store.js";
import { onChange } from "./lib/tabs.js";
import { App } from "./ui/app.js";
import { loadSteps } from "./ui/steps.js";

/** Answers whose sources are looked at again: those that people may have on the page. */
const ALL = 100;

const { thread, workspace } = readAddress();
setState({ workspace });
if (location.hash.startsWith("#thread=")) history.replaceState(null, "", address(`/t/${encodeURIComponent(thread ?? "")}`));

addEventListener("popstate", showAddress);
addEventListener("online", () => { setState({ offline: false, trouble: "" }); loadNewest(); });
addEventListener("offline", () => setState({ offline: true }));
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") refresh();
  // A telephone may end the page without another word.
  else keepDraft();
});
addEventListener("pagehide", () => keepDraft());
onChange((changed, elsewhere) => {
  if (changed === null && elsewhere) loadLists();
  else listThreads();
  if (changed === null) loadNewest(ALL);
  else if (changed === getState().thread?.id) loadNewest();
});

document.documentElement.lang = language;
const root = /** @type {Element} */ (document.getElementById("app"));
root.replaceChildren();
// Earlier answers name their steps, which the server knows.
showThread(thread, loadSteps());
render(html`<${App} />`, root);
start();
// Fetched at once, but after what the page begins with: the first question draws it.
import("./ui/turns.js");

function refresh() {
  listThreads();
  loadNewest(ALL);
}

function loadLists() {
  listThreads();
  listDocuments();
  listAssistants();
  followIngestions();
}

async function start() {
  loadLists();
  restoreTwins();
  const [caller, health, workspaces] = await Promise.all([
    fetchJson("/api/session").catch(() => null),
    fetchJson("/readyz").catch((error) => error.body ?? { problem: error.message }),
    fetchJson("/api/workspaces").catch(() => null),
  ]);
  const listed = workspaces?.workspaces ?? [];
  const own = caller?.workspaces;
  // The server takes the only one of a caller, and else one that they may not be able to enter.
  if (!workspace && own?.length > 1 && !own.includes("default")) location.replace(`/?${new URLSearchParams({ workspace: own[0] })}`);
  setState({ caller, workspaces: own ? own.map((id) => listed.find((each) => each.id === id) ?? { id, documents: 0, threads: 0 }) : listed });
  if (health.modes) setState({ hasModel: health.models !== "none", modes: health.modes, mode: health.modes.includes("standard") ? "standard" : health.modes[0] });
  if (health.problem) setState({ trouble: health.problem });
}
