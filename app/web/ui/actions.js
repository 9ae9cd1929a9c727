import { html, useState } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { ask } from "../lib/runs.js";
import { setState, useStore } from "../lib/store.js";
import { place } from "../lib/text.js";
import { Feedback } from "./feedback.js";

/** What can be done with an answer.
 * @param {{turn: Turn, sources: Source[]}} props */
export function Actions({ turn, sources }) {
  const modes = useStore((state) => state.modes);
  const { question, options } = turn;
  const others = modes.filter((mode) => mode !== options.mode);
  const askAgain = (event) => {
    const choice = /** @type {HTMLSelectElement} */ (event.currentTarget);
    ask(question, { ...options, mode: choice.value });
    choice.value = "";
  };
  return html`
    <div class="actions">
      <${Copy} turn=${turn} sources=${sources} />
      <button type="button" class="quiet" onClick=${() => setState({ draft: question })}>${phrase("actions.edit")}</button>
      ${others.length > 0 && html`
        <select class="quiet" aria-label=${phrase("actions.other_mode")} onChange=${askAgain}>
          <option value="">${phrase("actions.again")}</option>
          ${others.map((mode) => html`<option key=${mode} value=${mode}>${phrase("actions.in_mode", { mode })}</option>`)}
        </select>`}
      ${turn.runId && html`<${Feedback} turn=${turn} />`}
    </div>`;
}

/** Copies the answer with the list of its sources.
 * @param {{turn: Turn, sources: Source[]}} props */
function Copy({ turn, sources }) {
  const [copied, setCopied] = useState("");
  const copy = async () => {
    const cited = sources.filter((source) => source.cited);
    const lines = cited.map(({ citation }) => [`[${citation.marker}] ${citation.title}`, place(citation)].filter(Boolean).join(", "));
    const text = [turn.text, lines.join("\n")].filter(Boolean).join("\n\n");
    try {
      await navigator.clipboard.writeText(text);
      setCopied(phrase("actions.copied"));
    } catch {
      // Outside localhost and https there is no clipboard; the answer is then selected, ready to copy.
      const answer = document.querySelector(`[data-turn="${turn.key}"] .answer`);
      if (answer) getSelection()?.selectAllChildren(answer);
      setCopied(phrase("actions.selected"));
    }
  };
  return html`<button type="button" class="quiet copy" onClick=${copy}>${copied || phrase("actions.copy")}</button>`;
}
