import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { phrase } from "../../lib/language.js";
import { ask } from "../../lib/runs.js";
import { useStore } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { readOn } from "../../lib/topics.js";
import { TopicButton } from "../topic-button.js";

const MOST = 3;

/** What an ambiguous question may mean, to be picked. @param {{turn: Turn}} props */
export function Choices({ turn: { done, options } }) {
  const choices = (done.outcome_reasons ?? []).flatMap((reason) => reason.choices ?? []);
  return html`
    <ul class="starters" aria-label=${phrase("turn.choices")}>
      ${choices.map(({ label }) => html`<li key=${label}><button type="button" onClick=${() => ask(label, options)}><bdi>${visible(label)}</bdi></button></li>`)}
    </ul>`;
}

/** Questions that go on from an answer, and that its document answers. @param {{cited: Citation[]}} props */
export function ReadOn({ cited }) {
  const documents = useStore((state) => state.documents);
  const [topics, setTopics] = useState(/** @type {Topic[]} */ ([]));
  useEffect(() => {
    let gone = false;
    readOn(cited, documents, MOST).then((found) => { if (!gone) setTopics(found); }, () => {});
    return () => { gone = true; };
  }, [cited]);
  if (!topics.length) return null;
  return html`
    <div class="read-on"><span class="soft">${phrase("turn.read_on", { title: topics[0].of })}</span>
      <ul class="chips">${topics.map((topic) => html`<li key=${topic.name}><${TopicButton} topic=${topic} short /></li>`)}</ul></div>`;
}
