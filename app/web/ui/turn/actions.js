import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { address } from "../../lib/api.js";
import { useModes } from "../../lib/assistants.js";
import { writeAnswer } from "../../lib/export.js";
import { phrase } from "../../lib/language.js";
import { ask } from "../../lib/runs.js";
import { setState, useStore } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { icon } from "../icon.js";
import { Menu } from "../menu.js";
import { Details } from "./facts.js";
import { Feedback } from "./feedback.js";

/** What can be done with an answer, and a line about it. @param {{turn: Turn, cited: Source[]}} props */
export function Actions({ turn, cited }) {
  const { question, options, runId } = turn;
  const others = useModes().filter((mode) => mode !== options.mode);
  const mayDebug = useStore((state) => state.caller?.rights.includes("debug"));
  const edit = () => {
    setState({ draft: question });
    document.getElementById("question")?.focus();
  };
  return html`
    <div class="actions">
      <${Copy} turn=${turn} />
      ${runId && html`<${Feedback} turn=${turn} />`}
      ${runId && mayDebug && html`<a class="quiet icon" href=${address(`/debug/runs/${runId}`)} aria-label=${phrase("facts.why")} title=${phrase("facts.why")}>${icon("why")}</a>`}
      <${Menu} label=${phrase("more")} shown=${icon("more")}>
        ${runId && html`<${Link} runId=${runId} />`}
        <button type="button" onClick=${edit}>${phrase("actions.edit")}</button>
        ${others.map((mode) => html`<button type="button" key=${mode} onClick=${() => ask(question, { ...options, mode })}>${phrase("actions.in_mode", { mode: visible(mode) })}</button>`)}
      <//>
      <${Details} turn=${turn} cited=${cited} />
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
      // Outside localhost and https there is no clipboard; the answer is then selected, and copied as the browser does.
      const answer = document.querySelector(`[data-turn="${turn.key}"] .answer`);
      if (answer) getSelection()?.selectAllChildren(answer);
      addEventListener("copy", (event) => {
        event.preventDefault();
        event.clipboardData?.setData("text/plain", writeAnswer(turn));
      }, { once: true });
      const isCopied = document.execCommand("copy");
      setCopied(phrase(isCopied ? "actions.copied" : "actions.selected"));
    }
  };
  useEffect(() => copied ? clearTimeout.bind(null, setTimeout(() => setCopied(""), 4000)) : undefined, [copied]);
  return html`<button type="button" class="quiet icon copy" aria-label=${copied || phrase("actions.copy")} title=${phrase("actions.copy")} onClick=${copy}>${copied || icon("copy")}</button>`;
}

/** Leads to this answer, from wherever it is pasted. @param {{runId: string}} props */
function Link({ runId }) {
  const to = `${location.pathname}${location.search}#${encodeURIComponent(runId)}`;
  const copy = (event) => {
    history.replaceState(history.state, "", to);
    navigator.clipboard?.writeText(location.href).catch(() => {});
    event.currentTarget.closest("[popover]").hidePopover();
    event.preventDefault();
  };
  return html`<a href=${to} onClick=${copy}>${phrase("actions.link")}</a>`;
}
