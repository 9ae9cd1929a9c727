import { html, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { address, attempt } from "../lib/api.js";
import { deleteThread, goTo, listThreads, printAll, renameThread } from "../lib/conversations.js";
import { readConversation, save, writeConversation } from "../lib/export.js";
import { phrase } from "../lib/language.js";
import { setState, useStore } from "../lib/store.js";
import { day, short, visible } from "../lib/text.js";
import { Confirm } from "./confirm.js";
import { icon } from "./icon.js";
import { Menu } from "./menu.js";

/** The conversations, newest first, with a search over what was asked and answered in them. */
export function Conversations() {
  const threads = useStore((state) => state.threads);
  const more = useStore((state) => state.threadsNext);
  const search = useStore((state) => state.search);
  const shown = useStore((state) => state.thread?.id);
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  const find = (event) => {
    setState({ search: /** @type {HTMLInputElement} */ (event.currentTarget).value.trim() });
    clearTimeout(timer.current);
    timer.current = setTimeout(listThreads, 200);
  };
  return html`
    ${(threads.length > 0 || search) && html`<input type="search" class="search" aria-label=${phrase("conversations.search")} placeholder=${phrase("conversations.find")} onInput=${find} />`}
    ${!threads.length && html`<p class="soft empty">${phrase(search ? "conversations.none_found" : "conversations.none")}</p>`}
    ${byDay(threads).map(([name, own]) => html`
      <h2 class="day" key=${name}>${name}</h2>
      <ul class="list" key=${`${name} list`}>${own.map((thread) => html`<${Entry} key=${thread.thread_id} thread=${thread} current=${thread.thread_id === shown} />`)}</ul>`)}
    ${more && html`<button type="button" class="quiet" onClick=${() => listThreads(true)}>${phrase("show_more")}</button>`}`;
}

/** @param {ThreadEntry[]} threads @returns {[string, ThreadEntry[]][]} */
function byDay(threads) {
  /** @type {Map<string, ThreadEntry[]>} */
  const days = new Map();
  for (const thread of threads) {
    const name = day(thread.updated_at);
    if (!days.has(name)) days.set(name, []);
    days.get(name)?.push(thread);
  }
  return [...days];
}

/** @param {{thread: ThreadEntry, current: boolean}} props */
function Entry({ thread, current }) {
  const [renaming, setRenaming] = useState(false);
  const link = useRef(/** @type {HTMLElement | null} */ (null));
  const was = useRef(false);
  useLayoutEffect(() => {
    // The form took the focus with it.
    if (was.current && !renaming) link.current?.focus();
    was.current = renaming;
  }, [renaming]);
  const { thread_id: id, title, running, outdated } = thread;
  const name = short(title, 60);
  if (renaming) return html`<li><${Rename} id=${id} title=${title} close=${() => setRenaming(false)} /></li>`;
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    goTo(id);
  };
  return html`
    <li class="entry ${current ? "current" : ""}">
      <a href=${address(`/t/${encodeURIComponent(id)}`)} onClick=${open} aria-current=${current ? "page" : undefined} ref=${link}>
        <span class="entry-title"><bdi>${short(title, 200)}</bdi></span>
        ${(running || outdated) && html`<span class="soft">${running ? html`<span class="dot"></span>${phrase("conversations.answering")}` : phrase("conversations.outdated")}</span>`}
      </a>
      <span class="entry-actions">
        <${Menu} label="${phrase("more")}: ${name}" shown=${icon("more")}>
          <button type="button" onClick=${() => setRenaming(true)}>${phrase("conversations.rename")}</button>
          ${current && html`<button type="button" onClick=${printAll}>${phrase("conversations.print")}</button>`}
          <button type="button" onClick=${() => saveAs(id, "md")}>${phrase("conversations.save", { kind: "Markdown" })}</button>
          <button type="button" onClick=${() => saveAs(id, "html")}>${phrase("conversations.save", { kind: "HTML" })}</button>
          <${Confirm} of=${name} act=${() => deleteThread(id)} />
        <//>
      </span>
    </li>`;
}

/** @param {string} id @param {"md" | "html"} kind */
const saveAs = (id, kind) => attempt(async () => {
  const { title, turns } = await readConversation(id);
  save(title, kind === "md" ? writeConversation(title, turns) : await (await import("./saved-page.js")).writePage(title, turns), kind);
});

/** @param {{id: string, title: string, close: () => void}} props */
function Rename({ id, title, close }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  // Not when the field is made: then it is not on the page yet, and cannot take the focus.
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const save = (event) => {
    event.preventDefault();
    const wanted = String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("title")).trim();
    close();
    if (wanted && wanted !== title) renameThread(id, wanted);
  };
  const leave = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  return html`
    <form class="rename" onSubmit=${save} onKeyDown=${leave}>
      <input name="title" aria-label=${phrase("conversations.title")} maxlength="200" value=${visible(title).slice(0, 200)} ref=${input} />
      <button type="submit" class="quiet">${phrase("save")}</button>
      <button type="button" class="quiet" onClick=${close}>${phrase("cancel")}</button>
    </form>`;
}
