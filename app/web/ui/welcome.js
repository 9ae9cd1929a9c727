import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { ask } from "../lib/runs.js";
import { getState, setState, useStore } from "../lib/store.js";
import { makeTopic, readTopics } from "../lib/topics.js";
import { TopicButton } from "./topic-button.js";

/** A first visit: what this page is for, and questions that the library can answer. */
export function Welcome() {
  const documents = useStore((state) => state.documents);
  const all = useStore((state) => state.library?.all);
  const mayAdd = useStore((state) => state.caller?.rights.includes("ingest"));
  const topics = useStarters(documents, all);
  return html`
    <section class="welcome">
      <h2>${phrase("welcome.title")}</h2>
      <p class="soft">${phrase("welcome.promise")}</p>
      ${all === 0 && html`
        <p>${phrase("welcome.empty")} ${phrase(mayAdd ? "welcome.add" : "welcome.ask_to_add")}</p>
        ${mayAdd && html`<button type="button" class="main" onClick=${() => setState({ leftTab: "library", pane: "left" })}>${phrase("welcome.open")}</button>`}`}
      ${Boolean(all) && html`
        <ul class="starters" aria-label=${phrase("welcome.begin")}>
          <li><button type="button" onClick=${() => ask(phrase("welcome.which"), { mode: getState().mode, document_ids: null })}>${phrase("welcome.which")}</button></li>
          ${topics.map((topic) => html`<li key=${topic.document}><${TopicButton} topic=${topic} /></li>`)}
        </ul>`}
    </section>`;
}

/** A topic of each of the newest documents: the section with the longest name, which says most, or the whole.
 * @param {LibraryDocument[] | null} documents @param {number | undefined} all */
function useStarters(documents, all) {
  const [topics, setTopics] = useState(/** @type {Topic[]} */ ([]));
  useEffect(() => {
    const newest = [...(documents ?? [])].sort((one, other) => (one.updated_at < other.updated_at ? 1 : -1)).slice(0, 3);
    let gone = false;
    Promise.all(newest.map(chooseTopic)).then((found) => { if (!gone) setTopics(found); }, () => {});
    return () => { gone = true; };
    // Not whenever somebody looks through the library.
  }, [all]);
  return topics;
}

/** @param {LibraryDocument} document */
async function chooseTopic(document) {
  const { id, title, source } = document;
  const longest = (await readTopics(document)).reduce((one, other) => (other.name.length > one.name.length ? other : one), makeTopic(id, "", title));
  return longest.name ? longest : makeTopic(id, title || source, title || source);
}
