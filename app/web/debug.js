/** Starts the debugger's page. */

import { html, render } from "./vendor/preact-htm.js";
import { fetchJson } from "./lib/api.js";
import { listAssistants } from "./lib/assistants.js";
import { setState } from "./lib/store.js";
import { decode } from "./lib/text.js";
import { App } from "./ui/debug/app.js";

const [, named] = /^\/debug\/runs\/([^/]+)/.exec(location.pathname) ?? [];
setState({ workspace: new URLSearchParams(location.search).get("workspace") });

const root = /** @type {Element} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} runId=${named ? decode(named) : null} />`, root);
start();

async function start() {
  listAssistants();
  const [caller, workspaces, health] = await Promise.all([
    fetchJson("/api/session").catch(() => null),
    fetchJson("/api/workspaces").catch(() => null),
    fetchJson("/readyz").catch((error) => error.body),
  ]);
  setState({ caller, workspaces: workspaces?.workspaces ?? [], modes: health?.modes ?? [] });
}
