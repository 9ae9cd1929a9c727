import { html, useState } from "../../vendor/preact-htm.js";
import { useModes } from "../../lib/assistants.js";
import { writeAnswer } from "../../lib/export.js";
import { phrase } from "../../lib/language.js";
import { ask } from "../../lib/runs.js";
import { setState } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { Feedback } from "./feedback.js";
import { Why } from "./why.js";

/** What can be done with an answer.
 * @param {{turn: Turn}} props */
export function Actions({ turn }) {
  const { question, options } = turn;
  const others = useModes().filter((mode) => mode !== options.mode);
  const askAgain = (event) => {
    const choice = /** @type {HTMLSelectElement} */ (event.currentTarget);
    ask(question, { ...options, mode: choice.value });
    choice.value = "";
  };
  return html`
    <div class="actions">
      ${turn.runId && html`<${Why} runId=${turn.runId} />`}
      <${Copy} turn=${turn} />
      ${turn.runId && html`<${Link} runId=${turn.runId} />`}
      <button type="button" class="quiet" onClick=${() => setState({ draft: question })}>${phrase("actions.edit")}</button>
      ${others.length > 0 && html`
        <select class="quiet" aria-label=${phrase("actions.other_mode")} onChange=${askAgain}>
          <option value="">${phrase("actions.again")}</option>
          ${others.map((mode) => html`<option key=${mode} value=${mode}>${phrase("actions.in_mode", { mode: visible(mode) })}</option>`)}
        </select>`}
      ${turn.runId && html`<${Feedback} turn=${turn} />`}
    </div>`;
}

/** Copies the answer with the list of its sources. @param {{turn: Turn}} props */
function Copy({ turn }) {
  const [copied, setCopied] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(writeAnswer(turn));
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

/** Leads to this answer, from wherever it is pasted. @param {{runId: string}} props */
function Link({ runId }) {
  const [copied, setCopied] = useState(false);
  const to = `${location.pathname}${location.search}#${encodeURIComponent(runId)}`;
  const copy = (event) => {
    event.preventDefault();
    history.replaceState(history.state, "", to);
    navigator.clipboard?.writeText(location.href).then(() => setCopied(true), () => {});
  };
  return html`<a class="quiet link" href=${to} onClick=${copy}>${phrase(copied ? "actions.copied" : "actions.link")}</a>`;
}
