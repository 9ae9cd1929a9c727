import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { readBlocks } from "../lib/evidence.js";
import { phrase } from "../lib/language.js";
import { ask } from "../lib/runs.js";
import { getState, setState, useStore } from "../lib/store.js";
import { short, visible } from "../lib/text.js";

/** A first visit: what this page is for, and questions that the library can answer. */
export function Welcome() {
  const documents = useStore((state) => state.documents);
  const mayAdd = useStore((state) => state.caller?.rights.includes("ingest"));
  const starters = useStarters(documents);
  const askThis = (question) => ask(question, { mode: getState().mode, document_ids: null });
  return html`
    <section class="welcome">
      <h2>${phrase("welcome.title")}</h2>
      <p class="soft">${phrase("welcome.promise")}</p>
      ${documents?.length === 0 && html`
        <p>${phrase("welcome.empty")} ${phrase(mayAdd ? "welcome.add" : "welcome.ask_to_add")}</p>
        ${mayAdd && html`<button type="button" class="main" onClick=${() => setState({ leftTab: "library", pane: "left" })}>${phrase("welcome.open")}</button>`}`}
      ${starters.length > 0 && html`
        <ul class="starters" aria-label=${phrase("welcome.begin")}>
          ${starters.map((question) => html`<li key=${question}><button type="button" onClick=${() => askThis(question)}><bdi>${visible(question)}</bdi></button></li>`)}
        </ul>`}
    </section>`;
}

/** Headings that say nothing about what stands under them. */
const PLAIN = /^(introduction|contents|overview|summary|general|appendix|references|index|notes?|scope|purpose)$/i;
/** Larger documents are not read for the sake of a question. */
const MOST_CHARACTERS = 60_000;

/** Questions to begin with: what there is, what the newest document is about, and what two say under a heading.
 * @param {LibraryDocument[] | null} documents */
function useStarters(documents) {
  const [headings, setHeadings] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    if (!documents?.length) return;
    const small = documents.filter(({ characters }) => characters < MOST_CHARACTERS).slice(0, 3);
    let gone = false;
    Promise.all(small.map(askAboutHeading)).then((found) => { if (!gone) setHeadings(found.filter(Boolean)); }, () => {});
    return () => { gone = true; };
  }, [documents]);
  if (!documents?.length) return [];
  const newest = documents.reduce((one, other) => (other.updated_at > one.updated_at ? other : one));
  return [phrase("welcome.which"), newest.title && phrase("welcome.about", { title: short(newest.title, 70) }), ...headings].filter(Boolean).slice(0, 4);
}

/** @param {LibraryDocument} document */
async function askAboutHeading({ id, title }) {
  const { blocks } = await readBlocks(id);
  const headings = blocks.filter(({ kind }) => kind === "heading").map(({ text }) => text.replace(/^#+\s*/, ""));
  const telling = headings.find((each, place) => place && each.length < 60 && !PLAIN.test(each) && each !== title);
  return telling ? phrase("welcome.says", { title: short(title, 60), heading: telling }) : "";
}
