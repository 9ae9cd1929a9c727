import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { address, fetchJson } from "../lib/api.js";
import { phrase } from "../lib/language.js";
import { limits } from "../lib/library.js";
import { ask } from "../lib/runs.js";
import { getState, useStore } from "../lib/store.js";
import { visible } from "../lib/text.js";
import { pickFiles } from "./drop-zone.js";

/** A first visit: what this page is for. */
export const Welcome = () => html`
  <section class="welcome">
    <h2>${phrase("welcome.title")}</h2>
    <p class="soft">${phrase("welcome.promise")}</p>
  </section>`;

/** Below the box of a new conversation: questions that the library can answer, or how it gets its first documents. */
export function Starters() {
  const all = useStore((state) => state.library?.all);
  const mayAdd = useStore((state) => state.caller?.rights.includes("ingest"));
  const limited = useStore(({ chosen, only }) => chosen.length > 0 || only !== null);
  const questions = useStarters(all);
  if (all === undefined) return html`<div class="box below"></div>`;
  if (!all) return html`
    <div class="box below drop-area">
      <p><b>${phrase("welcome.empty")}</b> ${phrase(mayAdd ? "welcome.add" : "welcome.ask_to_add")}</p>
      ${mayAdd && html`<button type="button" class="main" onClick=${pickFiles}>${phrase("library.add")}</button>`}
    </div>`;
  return html`
    <ul class="box below starters" aria-label=${phrase("welcome.begin")}>
      ${(limited ? [phrase("welcome.which")] : questions).map((question) => html`<li key=${question}><button type="button" onClick=${() => ask(question, { mode: getState().mode, ...limits() })}><bdi>${visible(question)}</bdi></button></li>`)}
    </ul>`;
}

/** Questions that the newest documents answer; where these are few, what there is. @param {number | undefined} all */
function useStarters(all) {
  const [questions, setQuestions] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    if (!all) return;
    let gone = false;
    const show = ({ questions }) => gone || setQuestions([...questions, phrase("welcome.which")].slice(0, MOST));
    fetchJson(address("/api/starters", { limit: MOST })).then(show, () => show({ questions: [] }));
    return () => { gone = true; };
    // Not whenever somebody looks through the library.
  }, [all]);
  return questions;
}

const MOST = 3;
