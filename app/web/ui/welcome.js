import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { listNewest } from "../lib/library.js";
import { ask } from "../lib/runs.js";
import { getState, useStore } from "../lib/store.js";
import { short, visible } from "../lib/text.js";
import { readTopics } from "../lib/topics.js";
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
  const questions = useStarters(all);
  if (all === undefined) return html`<div class="box below"></div>`;
  if (!all) return html`
    <div class="box below drop-area">
      <p><b>${phrase("welcome.empty")}</b> ${phrase(mayAdd ? "welcome.add" : "welcome.ask_to_add")}</p>
      ${mayAdd && html`<button type="button" class="main" onClick=${pickFiles}>${phrase("library.add")}</button>`}
    </div>`;
  return html`
    <ul class="box below starters" aria-label=${phrase("welcome.begin")}>
      ${questions.map((question) => html`<li key=${question}><button type="button" onClick=${() => ask(question, { mode: getState().mode, document_ids: null })}><bdi>${visible(question)}</bdi></button></li>`)}
    </ul>`;
}

/** A question to each of the newest documents that says something of a topic; else, what there is.
 * @param {number | undefined} all */
function useStarters(all) {
  const [questions, setQuestions] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    if (!all) return;
    let gone = false;
    listNewest(6).then((newest) => Promise.all(newest.map(readTopics))).then((found) => {
      if (!gone) setQuestions([...choose(found), phrase("welcome.which")].slice(0, MOST));
    }, () => {});
    return () => { gone = true; };
    // Not whenever somebody looks through the library.
  }, [all]);
  return questions;
}

const MOST = 2;

/** Of each document the topic with most text that fewest of the others have, too, and no question before: "Scope"
 * leads anywhere. First those that no other has. @param {Topic[][]} found */
function choose(found) {
  /** @type {Topic[]} */
  const best = [];
  /** @param {Topic} topic */
  const shared = ({ name }) => found.filter((topics) => topics.some((other) => other.name.toLowerCase() === name.toLowerCase())).length;
  for (const topics of found) {
    const [first] = topics.filter(({ name }) => !best.some((other) => other.name.toLowerCase() === name.toLowerCase()))
      .sort((one, other) => shared(one) - shared(other) || other.size - one.size);
    if (first) best.push(first);
  }
  return best.sort((one, other) => shared(one) - shared(other)).map(({ name, of }) => phrase("welcome.about", { name: short(name, 60), title: short(of, 80) }));
}
