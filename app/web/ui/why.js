import { html, useState } from "../vendor/preact-htm.js";
import { address, fetchJson } from "../lib/api.js";
import { useStore } from "../lib/store.js";
import { visible } from "../lib/text.js";

/** The facts that decided how a run ended, for those who may read its steps.
 * @param {{runId: string}} props */
export function Why({ runId }) {
  const mayAsk = useStore((state) => state.caller?.rights.includes("debug"));
  const [facts, setFacts] = useState(/** @type {{about: string, text: string}[] | null} */ (null));
  if (!mayAsk) return null;
  const read = () =>
    fetchJson(address(`/api/runs/${runId}/why`)).then(
      (why) => setFacts(why.facts),
      (error) => setFacts([{ about: "", text: error.message }]),
    );
  if (!facts) return html`<button type="button" class="quiet" onClick=${read}>Why this answer?</button>`;
  return html`
    <h3>Why this answer</h3>
    <ul class="claims">
      ${facts.map(({ about, text }, number) => html`<li key=${number}><b>${visible(about)}</b> <bdi>${visible(text)}</bdi></li>`)}
    </ul>`;
}
