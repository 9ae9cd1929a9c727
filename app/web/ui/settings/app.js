import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { setState, useStore } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { SignIn } from "../sign-in.js";
import { Keys } from "./keys.js";
import { Models } from "./models.js";
import { RetentionPolicy } from "./retention.js";
import { Usage } from "./usage.js";
import { WorkspaceTable } from "./workspaces.js";

/** Who may ask what, what that costs, and how long it is kept: for administrators of the whole deployment. */
export function Settings() {
  const signedOut = useStore((state) => state.signedOut);
  const trouble = useStore((state) => state.trouble);
  const [caller, setCaller] = useState(/** @type {any} */ (null));
  useEffect(() => void attempt(async () => setCaller(await fetchJson("/api/session"))), []);
  if (signedOut) return html`<main class="alone"><${SignIn} /></main>`;
  const may = caller?.rights.includes("admin") && !caller.workspaces && !caller.groups;
  return html`
    <main class="settings">
      <p><a href="/">‹ ${phrase("settings.back")}</a> · <a href="/debug">${phrase("settings.runs")} ›</a></p>
      <h1>${phrase("settings.title")}</h1>
      <div role="alert">
        ${trouble && html`<p class="note bad">${visible(trouble)} <button type="button" class="quiet" onClick=${() => setState({ trouble: "" })}>${phrase("close")}</button></p>`}
        ${caller && !may && (caller.name === "owner" ? html`<div class="note">${phrase("settings.on_machine")}<p><code class="secret">${FIRST}</code></p></div>` : html`<p class="note">${phrase("settings.not_yours")}</p>`)}
      </div>
      ${may && html`<${Sections} caller=${caller} />`}
    </main>`;
}

const FIRST = 'askgraph keys create "Your name" --right ask --right ingest --right debug --right admin';

/** @param {{caller: any}} props */
function Sections({ caller }) {
  const [keys, setKeys] = useState(/** @type {Key[] | null} */ (null));
  const [workspaces, setWorkspaces] = useState(/** @type {{id: string, documents: number, threads: number}[]} */ ([]));
  const loadKeys = () => attempt(async () => setKeys((await fetchJson("/api/keys")).keys));
  const loadWorkspaces = () => attempt(async () => setWorkspaces((await fetchJson("/api/workspaces")).workspaces));
  useEffect(() => {
    loadKeys();
    loadWorkspaces();
  }, []);
  if (!keys) return html`<p class="soft">…</p>`;
  const names = Object.fromEntries([["owner", phrase("usage.machine")], ...keys.map(({ key_id, name }) => [`key:${key_id}`, name])]);
  return html`
    <${Keys} caller=${caller} keys=${keys} load=${loadKeys} />
    <${Models} />
    <${WorkspaceTable} workspaces=${workspaces} load=${loadWorkspaces} />
    <${Usage} workspaces=${workspaces} names=${names} />
    <${RetentionPolicy} workspaces=${workspaces} />`;
}
