import { html } from "../vendor/preact-htm.js";
import { ask } from "../lib/runs.js";
import { getState } from "../lib/store.js";
import { visible } from "../lib/text.js";

/** Asks what a section is about, of its document alone. @param {{topic: Topic, short?: boolean}} props */
export function TopicButton({ topic: { question, name, of, document }, short = false }) {
  return html`
    <button type="button" onClick=${() => ask(question, { mode: getState().mode, document_ids: [document] })}>
      <bdi>${visible(name)}</bdi>${!short && of !== name && html` <bdi class="soft">${visible(of)}</bdi>`}</button>`;
}
