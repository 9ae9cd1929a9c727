import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { limits } from "../lib/library.js";
import { ask, MOST_RUNS, stopAnswer } from "../lib/runs.js";
import { setState, useStore } from "../lib/store.js";
import { short } from "../lib/text.js";
import { Modes } from "./modes.js";

/** Where questions are written. */
export function Composer() {
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const draft = useStore((state) => state.draft);
  const mode = useStore((state) => state.mode);
  const chosen = useStore((state) => state.chosen.length);
  const only = useStore((state) => state.only);
  const thread = useStore((state) => state.thread);
  const working = thread?.turns.filter(({ state }) => state === "working") ?? [];
  const full = working.length >= MOST_RUNS;

  useLayoutEffect(() => {
    if (draft === null || !box.current) return;
    box.current.value = draft;
    box.current.focus();
    setState({ draft: null });
    fit(box.current);
  }, [draft]);
  useEffect(() => {
    // On a telephone that would bring up the keyboard.
    if (matchMedia("(hover: hover)").matches) box.current?.focus();
  }, [thread?.identity]);

  const send = () => {
    const { current } = box;
    const question = current?.value.trim();
    if (!current || !question || full) return;
    if (ask(question, { mode, ...limits() })) {
      current.value = "";
      fit(current);
    }
  };
  const onKeyDown = (event) => {
    // While an input method composes a word, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  const stop = () => {
    stopAnswer(working[0].key);
    box.current?.focus();
  };
  return html`
    <section class="composer" aria-label=${phrase("composer.ask")}>
      <form class="column" onSubmit=${(event) => { event.preventDefault(); send(); }}>
        <label class="unseen" for="question">${phrase("composer.question")}</label>
        <textarea id="question" rows="1" placeholder=${phrase("composer.placeholder")} aria-describedby="keys" ref=${box}
          onKeyDown=${onKeyDown} onInput=${(event) => fit(/** @type {HTMLTextAreaElement} */ (event.currentTarget))}></textarea>
        <span class="unseen" id="keys">${phrase("composer.keys")}</span>
        <div class="row">
          <${Modes} />
          <button type="button" class="quiet" title=${phrase("composer.choose")} onClick=${() => setState({ pane: "left", leftTab: "library" })}>
            ${chosen ? phrase("documents", { count: chosen }) : only ? short(only.name, 40) : phrase("composer.all")}</button>
          <span class="ends">
            ${working.length === 1 && html`<button type="button" id="stop" onClick=${stop}>${working[0].stopping ? phrase("stopping") : phrase("stop")}</button>`}
            <button id="send" class="main" type="submit" disabled=${full}>${phrase("composer.ask")}</button>
          </span>
        </div>
      </form>
    </section>`;
}

/** Makes the box as high as its text. @param {HTMLTextAreaElement} box */
function fit(box) {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}
