import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { askAll, chooseDocument, learnNames, limits, listKnown, MOST_NAMED } from "../lib/library.js";
import { ask, MOST_RUNS, stopAnswer } from "../lib/runs.js";
import { getState, setState, useStore } from "../lib/store.js";
import { short } from "../lib/text.js";
import { pickFiles } from "./drop-zone.js";
import { icon } from "./icon.js";
import { Modes } from "./modes.js";

/** Characters of a question, at most, as the server counts them. */
const MOST_CHARACTERS = 2000;

/** @param {string} draft */
const measure = (draft) => [...draft.trim()].length;

/** Where questions are written. */
export function Composer() {
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const draft = useStore((state) => state.draft);
  const mode = useStore((state) => state.mode);
  const thread = useStore((state) => state.thread);
  const working = thread?.turns.filter(({ state }) => state === "working") ?? [];
  const full = working.length >= MOST_RUNS;
  const length = measure(draft);
  const mayAdd = useStore((state) => state.caller?.rights.includes("ingest"));

  // As high as its text.
  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return;
    current.style.height = "auto";
    current.style.height = `${current.scrollHeight + 2}px`;
  }, [draft]);
  useEffect(() => {
    // On a telephone that would bring up the keyboard.
    if (matchMedia("(hover: hover)").matches) box.current?.focus();
  }, [thread?.identity]);

  const send = () => {
    const { draft } = getState();
    if (draft.trim() && measure(draft) <= MOST_CHARACTERS && ask(draft.trim(), { mode, ...limits() })) setState({ draft: "" });
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
      <form class="box" onSubmit=${(event) => { event.preventDefault(); send(); }}>
        <label class="unseen" for="question">${phrase("composer.question")}</label>
        <textarea id="question" rows="1" placeholder=${phrase("composer.placeholder")} aria-describedby="keys" ref=${box}
          value=${draft} onKeyDown=${onKeyDown} onInput=${(event) => setState({ draft: event.currentTarget.value })}></textarea>
        <span class="unseen" id="keys">${phrase("composer.keys")}</span>
        <div class="wrong" role="status">${length > MOST_CHARACTERS && phrase("composer.too_long", { count: length, most: MOST_CHARACTERS })}</div>
        <${Scope} />
        <div class="row">
          ${mayAdd && html`<button type="button" class="quiet icon" aria-label=${phrase("library.add")} title=${phrase("library.add")} onClick=${pickFiles}>${icon("add")}</button>`}
          <${Modes} />
          ${working.length === 1 ? html`<button type="button" id="stop" class="main icon" aria-label=${phrase(working[0].stopping ? "stopping" : "stop")} title=${phrase("stop")} onClick=${stop}>${icon("stop")}</button>`
            : html`<button id="send" class="main icon" type="submit" aria-label=${phrase("composer.ask")} title=${phrase("composer.ask")} disabled=${full || length > MOST_CHARACTERS}>${icon("send")}</button>`}
        </div>
      </form>
    </section>`;
}

/** What the next answer is limited to. @type {() => any} */
function Scope() {
  const documents = useStore((state) => state.documents);
  const others = useStore((state) => state.named);
  const chosen = useStore((state) => state.chosen);
  useEffect(() => void learnNames(chosen.slice(0, MOST_NAMED)), [documents, chosen]);
  const only = useStore((state) => state.only);
  const named = chosen.slice(0, MOST_NAMED).map((id) => listKnown({ documents, named: others }).find((each) => each.id === id)).filter((each) => each !== undefined);
  const chip = (key, name, remove) => html`
    <li key=${key}><button type="button" class="chip" aria-label="${phrase("composer.remove")} ${short(name, 80)}" onClick=${remove}><bdi>${short(name, 60)}</bdi> ✕</button></li>`;
  if (!chosen.length && !only) return null;
  return html`
    <ul class="chips" aria-label=${phrase("turn.limited")}>
      ${only && chip("only", only.name, askAll)}
      ${named.map(({ id, title, source }) => chip(id, title || source, () => chooseDocument(id)))}
      ${named.length < chosen.length && chip("others", `+ ${phrase("documents", { count: chosen.length - named.length })}`, () => setState({ chosen: named.map(({ id }) => id) }))}
    </ul>`;
}
