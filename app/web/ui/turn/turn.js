import { html, useEffect, useMemo, useState } from "../../vendor/preact-htm.js";
import { phrase, texts } from "../../lib/language.js";
import { keepFound, learnNames, listKnown, MOST_NAMED, nameLimits } from "../../lib/library.js";
import { memo } from "../../lib/memo.js";
import { renderReplaced } from "../../lib/passages.js";
import { ask, stopAnswer } from "../../lib/runs.js";
import { goTo } from "../../lib/conversations.js";
import { setState, useStore } from "../../lib/store.js";
import { short, visible } from "../../lib/text.js";
import { listSources } from "../../lib/turns.js";
import { Actions } from "./actions.js";
import { Answer } from "./answer.js";
import { Choices } from "./choices.js";
import { Facts } from "./facts.js";
import { NOTATION } from "../notation.js";
import { STEPS } from "../steps.js";

/** One question and its answer; of several that are being answered, each has its own Stop.
 * @param {{turn: Turn, several: boolean, last: boolean}} props */
function TurnView({ turn, several, last }) {
  const sources = useMemo(() => listSources(turn), [turn.cited, turn.read]);
  const citations = useMemo(() => sources.map(({ citation }) => citation), [sources]);
  const { key, question, options, text, state, done, corrections } = turn;
  const warnings = (done?.warnings ?? []).filter((warning) => !corrections.some(({ reason }) => reason === warning));
  return html`
    <article class="turn ${state}" data-turn=${key} data-run=${turn.runId}>
      <h2 class="question" dir="auto">${visible(question)}</h2>
      ${(options.document_ids || options.filter) && html`<${Limited} options=${options} />`}
      ${state === "working" && html`<${Progress} turn=${turn} several=${several} />`}
      ${turn.tools.length > 0 && html`<${Work} turn=${turn} />`}
      ${turn.restarted && html`<p class="note restarted">${turn.restarted}</p>`}
      <${Answer} turn=${key} text=${text} sources=${citations} outcome=${done?.outcome} />
      ${corrections.map((correction, place) => html`<${Correction} key=${place} turn=${turn} correction=${correction} now=${corrections[place + 1]?.withdrawn ?? text} />`)}
      ${last && done?.outcome === "asked_back" && html`<${Choices} turn=${turn} />`}
      ${warnings.map((warning) => html`<p class="note" key=${warning} dir="auto">${visible(warning)}</p>`)}
      ${turn.error && html`<${Failure} turn=${turn} />`}
      ${turn.note && html`<${Offer} turn=${turn} ...${turn.note} />`}
      ${(done || citations.length > 0) && html`<${Facts} turn=${turn} sources=${sources} />`}
      ${done && (done.outcome === "abstained" || done.outcome === "showed_passages") && (options.document_ids || options.filter) && html`
        <p><button type="button" onClick=${() => ask(question, { ...options, document_ids: null, filter: null })}>${phrase("turn.search_all")}</button></p>`}
      ${done && html`<${Actions} turn=${turn} cited=${sources.filter((source) => source.cited)} />`}
    </article>`;
}

export const Turn = memo(TurnView);

/** What the answer was limited to. @param {{options: Options}} props */
function Limited({ options }) {
  const names = useStore((state) => nameLimits(options, listKnown(state)).join(", "));
  const documents = useStore((state) => state.documents);
  useEffect(() => void learnNames(options.document_ids?.slice(0, MOST_NAMED) ?? []), [documents]);
  return html`<p class="soft limited">${phrase("turn.limited")} <bdi>${short(names, 300)}</bdi></p>`;
}

/** What the research agent looks up; folded once the answer is written. @param {{turn: Turn}} props */
function Work({ turn: { tools, state, text } }) {
  return html`
    <details class="work" open=${state === "working" && !text}>
      <summary>${phrase("turn.looked_up", { count: tools.length })}</summary>
      <ol>
        ${tools.map((tool) => html`
          <li key=${tool.call_id}>
            ${nameTool(tool.name)} <bdi>${visible(describeCall(tool))}</bdi>
            <span class="soft"> ${tool.sources === undefined ? "…" : tool.sources ? phrase("turn.brought", { count: tool.sources }) : visible(short(readResult(tool.text ?? "")))}</span>
          </li>`)}
      </ol>
    </details>`;
}

/** A function from outside has the name SERVER__FUNCTION. @param {string} name */
function nameTool(name) {
  const [server, ...rest] = name.split("__");
  return rest.length ? phrase("tools.outside", { server: visible(server), function: visible(rest.join("__")) }) : phrase(`tools.${name}`);
}

/** What was computed, each figure with its name: of a table, its first row. @param {string} text */
function readResult(text) {
  const [names, rule, row] = text.split("\n").map((line) => line.split(" | "));
  return row && rule[0] === "---" ? names.map((name, column) => `${name}: ${row[column]}`).join(", ") : text;
}

/** The words of a call that say what is looked for, and where; all of what leaves for outside. How something is computed is for the debugger. @param {ToolUse} tool */
function describeCall({ name, arguments: given }) {
  if (name.includes("__")) return JSON.stringify(given);
  const { queries = [], document = "", section = "", page = null, documents = [], filter = "" } = given;
  const what = [...queries.map((query) => `“${query}”`), document, section, page ? `p. ${page}` : "", filter];
  return [what.filter(Boolean).join(", "), documents.join(", ")].filter(Boolean).join(" — ");
}

/** What happens now. @param {{turn: Turn, several: boolean}} props */
function Progress({ turn: { key, question, waiting, step, stopping }, several }) {
  const now = step ? `${texts[`steps.${step}`] ?? STEPS[step] ?? step}…` : "";
  const stop = () => {
    stopAnswer(key);
    // The button goes with the answer's end, and the focus would go with it.
    document.getElementById("question")?.focus();
  };
  return html`
    <div class="status">
      <p class="step">${visible(waiting || now)}</p>
      ${several && html`<button type="button" aria-label=${phrase("turn.stop", { question: short(question) })} onClick=${stop}>${stopping ? phrase("stopping") : phrase("stop")}</button>`}
    </div>`;
}

/** That the answer was corrected, and behind that what it said before. @param {{turn: Turn, correction: Correction, now: string}} props */
function Correction({ turn: { done, verification }, correction: { reason, withdrawn }, now }) {
  const [shown, setShown] = useState(false);
  const gone = done?.outcome_reasons?.find(({ code }) => code === "withdrawn")?.statements.length;
  return html`
    <details class="correction" onToggle=${(event) => setShown(event.currentTarget.open)}>
      <summary>${gone && verification ? phrase("turn.withdrawn", { gone, count: verification.claims.length }) : phrase("turn.corrected")}</summary>
      ${shown && html`${!gone && html`<p class="soft">${visible(reason)}</p>`}<div class="answer soft">${renderReplaced(withdrawn, now, NOTATION)}</div>`}
    </details>`;
}

/** @param {{turn: Turn}} props */
function Failure({ turn }) {
  const { code, message, retryable } = turn.error;
  const ids = turn.options.document_ids;
  if (code === "unknown_document" && ids) {
    const askOthers = async () => {
      const left = ids.length > 1 ? await keepFound(ids) : null;
      if (left?.length === 0) setState({ trouble: phrase("turn.none_left") });
      else ask(turn.question, { ...turn.options, document_ids: left }, turn.key);
    };
    return html`<${Offer} turn=${turn} text=${phrase("turn.limit_gone")} bad=${true} label=${phrase(ids.length > 1 ? "turn.ask_others" : "turn.search_all")} act=${askOthers} />`;
  }
  if (code !== "damaged_state" && code !== "unknown_thread") return html`<${Offer} turn=${turn} text=${message} bad=${true} label=${phrase(retryable ? "try_again" : "ask_again")} />`;
  const move = async () => {
    await goTo(null);
    ask(turn.question, turn.options);
  };
  return html`<${Offer} turn=${turn} text=${code === "damaged_state" ? message : phrase("conversations.gone")} bad=${true} label=${phrase("turn.ask_elsewhere")} act=${move} />`;
}

/** Says what is wrong, and offers what to do about it: to ask once more, unless `act` is something else.
 * @param {{turn: Turn, text: string, label: string, bad?: boolean, act?: () => void}} props */
function Offer({ turn, text, label, bad, act }) {
  const again = () => ask(turn.question, turn.options, turn.key);
  return html`
    <div class="note ${bad ? "bad" : ""}" role="alert"><p>${visible(text)}</p>
      <button type="button" onClick=${act ?? again}>${label}</button></div>`;
}
