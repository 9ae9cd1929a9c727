import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { readBlocks } from "../lib/evidence.js";
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
      <h2>Ask your documents.</h2>
      <p class="soft">Every answer shows where it comes from. What the documents do not say is not answered.</p>
      ${documents?.length === 0 && html`
        <p>The library is empty. ${mayAdd ? "Add files, or drop them anywhere on this page: PDF, Word, PowerPoint, Excel, Markdown, HTML and more." : "Ask whoever looks after it to add documents."}</p>
        ${mayAdd && html`<button type="button" class="main" onClick=${() => setState({ leftTab: "library", pane: "left" })}>Open the library</button>`}`}
      ${starters.length > 0 && html`
        <ul class="starters" aria-label="To begin with">
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
  return ["Which documents are there?", newest.title && `What is “${short(newest.title, 70)}” about?`, ...headings].filter(Boolean).slice(0, 4);
}

/** @param {LibraryDocument} document */
async function askAboutHeading({ id, title }) {
  const { blocks } = await readBlocks(id);
  const headings = blocks.filter(({ kind }) => kind === "heading").map(({ text }) => text.replace(/^#+\s*/, ""));
  const telling = headings.find((each, place) => place && each.length < 60 && !PLAIN.test(each) && each !== title);
  return telling ? `What does “${short(title, 60)}” say about “${telling}”?` : "";
}
