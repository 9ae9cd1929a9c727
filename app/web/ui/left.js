import { html, useEffect } from "../vendor/preact-htm.js";
import { goTo } from "../lib/conversations.js";
import { language, phrase } from "../lib/language.js";
import { setState, useStore } from "../lib/store.js";
import { Conversations } from "./conversations.js";
import { icon } from "./icon.js";
import { Library } from "./library.js";
import { signOut } from "./sign-in.js";
import { Workspaces } from "./workspaces.js";

/** The left pane: whose documents, which conversation, which files. */
export function Left() {
  const inLibrary = useStore((state) => state.leftTab === "library");
  const documents = useStore((state) => state.library?.all);
  const arriving = useStore((state) => state.uploads.filter(({ error }) => !error).length
    + state.ingestions.filter(({ ended_at }) => !ended_at).length);
  const signedIn = useStore((state) => state.caller && state.caller.name !== "owner");
  const mayManage = useStore(({ caller }) => caller?.name === "owner" || (caller?.rights.includes("admin") && !caller.workspaces && !caller.groups));
  const open = useStore((state) => state.pane === "left");
  const hasTurns = useStore((state) => Boolean(state.thread?.id || state.thread?.turns.length));
  // In a narrow window the pane is a sheet, and what lies under it takes no focus.
  useEffect(() => {
    if (!open) return;
    focus(".left .only-narrow");
    return () => focus(".bar button");
  }, [open]);
  return html`
    <nav class="left ${inLibrary ? "in-library" : ""}" aria-label=${phrase("app.left")}>
      <div class="left-top">
        <h1>askgraph</h1>
        ${mayManage && html`<a class="quiet icon" href="/settings" aria-label=${phrase("settings.short")} title=${phrase("settings.short")}>${icon("settings")}</a>`}
        ${signedIn && html`<button type="button" class="quiet" onClick=${signOut}>${phrase("app.sign_out")}</button>`}
        <button type="button" class="quiet only-narrow" onClick=${() => setState({ pane: "" })}>${phrase("close")}</button>
      </div>
      <${Workspaces} />
      ${hasTurns && html`<button type="button" class="new" onClick=${() => startNew()}>${icon("add")} ${phrase("app.new")}</button>`}
      <button type="button" class="quiet switch" aria-expanded=${inLibrary} onClick=${() => setState({ leftTab: inLibrary ? "conversations" : "library" })}>
        ${icon(inLibrary ? "back" : "library")} ${phrase("app.library")} <span class="soft">${arriving ? phrase("app.arriving", { count: arriving }) : documents?.toLocaleString(language) ?? ""}</span></button>
      <div class="left-panel" role="group" aria-label=${phrase(inLibrary ? "app.library" : "app.conversations")}>
        ${inLibrary ? html`<${Library} />` : html`<${Conversations} />`}
      </div>
    </nav>`;
}

/** @param {string} selector */
const focus = (selector) => /** @type {HTMLElement | null} */ (document.querySelector(selector))?.focus();

export async function startNew() {
  await goTo(null);
  focus("#question");
}
