import { html } from "../../vendor/preact-htm.js";
import { phrase } from "../../lib/language.js";
import { ask } from "../../lib/runs.js";
import { visible } from "../../lib/text.js";

/** What an ambiguous question may mean, to be picked. @param {{turn: Turn}} props */
export function Choices({ turn: { done, options } }) {
  const choices = (done.outcome_reasons ?? []).flatMap((reason) => reason.choices ?? []);
  return html`
    <ul class="starters" aria-label=${phrase("turn.choices")}>
      ${choices.map(({ label }) => html`<li key=${label}><button type="button" onClick=${() => ask(label, options)}><bdi>${visible(label)}</bdi></button></li>`)}
    </ul>`;
}
