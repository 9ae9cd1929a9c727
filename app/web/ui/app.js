import { html, useEffect } from "../vendor/preact-htm.js";
import { closeEvidence, leaf } from "../lib/evidence.js";
import { phrase } from "../lib/language.js";
import { getState, setState, useStore } from "../lib/store.js";
import { short, visible } from "../lib/text.js";
import { Composer } from "./composer.js";
import { DropZone } from "./drop-zone.js";
import { icon } from "./icon.js";
import { lazy } from "./lazy.js";
import { Left, startNew } from "./left.js";
import { SignIn } from "./sign-in.js";
import { Tip } from "./tip.js";
import { Starters, Welcome } from "./welcome.js";

const AssistantDialog = lazy(() => import("./assistant-dialog.js").then((module) => module.AssistantDialog));
const Turns = lazy(() => import("./turns.js").then((module) => module.Turns));
const Evidence = lazy(() => import("./evidence/evidence.js").then((module) => module.Evidence));

/** The page: conversations and library on the left, the conversation in the middle, its evidence on the right. */
export function App() {
  const signedOut = useStore((state) => state.signedOut);
  const hasEvidence = useStore((state) => state.evidence !== null);
  const edited = useStore((state) => state.edited);
  const leftOpen = useStore((state) => state.pane === "left");
  const isNew = useStore(({ thread }) => Boolean(thread && !thread.turns.length && !thread.loading && !thread.trouble));
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (signedOut) return html`<main class="alone"><${SignIn} /></main>`;
  return html`
    <div class="page ${hasEvidence ? "with-evidence" : ""} ${leftOpen ? "with-left" : ""}">
      <${Left} />
      <main class="middle ${isNew ? "fresh" : ""}">
        <${Bar} />
        <${Notices} />
        ${isNew ? html`<div class="turns"><div class="column"><${Welcome} /></div></div>` : html`<${Turns} />`}
        <${Composer} />
        ${isNew && html`<${Starters} />`}
        <${Tip} />
      </main>
      ${hasEvidence && html`<${Evidence} />`}
    </div>
    ${edited && html`<${AssistantDialog} item=${edited.item} close=${() => setState({ edited: null })} />`}
    <${DropZone} />
    <${Status} />`;
}

/** What narrow windows have in place of the left pane. */
function Bar() {
  const title = useStore(({ thread }) => thread?.title || thread?.turns[0]?.question || "askgraph");
  const hasTurns = useStore(({ thread }) => Boolean(thread?.turns.length));
  useEffect(() => {
    document.title = short(title, 60);
  }, [title]);
  return html`
    <div class="bar">
      <button type="button" class="quiet" onClick=${() => setState({ pane: "left" })}>${phrase("app.conversations")}</button>
      <h1 class="bar-title"><bdi>${short(title, 60)}</bdi></h1>
      ${hasTurns && html`<button type="button" class="quiet icon" aria-label=${phrase("app.new")} title=${phrase("app.new")} onClick=${startNew}>${icon("add")}</button>`}
    </div>`;
}

/** What is wrong, in words. */
function Notices() {
  const trouble = useStore((state) => state.trouble);
  const offline = useStore((state) => state.offline);
  return html`
    <div class="notices" role="alert">
      ${offline && html`<p class="note">${phrase("app.offline")}</p>`}
      ${trouble && !offline && html`
        <p class="note bad" id="trouble"><span>${visible(trouble)}</span>
          <button type="button" class="quiet" onClick=${() => setState({ trouble: "" })}>${phrase("close")}</button></p>`}
    </div>`;
}

function Status() {
  const status = useStore((state) => state.status);
  return html`<div id="status" class="unseen" role="status">${visible(status)}</div>`;
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const { evidence, tip, pane } = getState();
  if (event.key === "Escape") {
    // The browser closes what lies on top.
    if (document.querySelector(":popover-open")) return;
    if (tip) setState({ tip: null });
    if (evidence) closeEvidence();
    else if (pane) setState({ pane: "" });
    return;
  }
  const { target } = event;
  const types = target instanceof HTMLElement && target.closest("input:not([type=checkbox]), textarea, select");
  if (types || event.metaKey || event.ctrlKey || event.altKey) return;
  // Who begins to write means the question, wherever the focus was left: on a box that was ticked, a button.
  if (event.key.length === 1 && /[\p{L}\p{N}]/u.test(event.key) && !document.querySelector(":popover-open, dialog[open]")) document.getElementById("question")?.focus();
  if (event.key !== "[" && event.key !== "]") return;
  event.preventDefault();
  leaf(event.key === "]" ? 1 : -1);
}
