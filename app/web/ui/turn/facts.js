import { html } from "../../vendor/preact-htm.js";
import { openCitation } from "../../lib/evidence.js";
import { caveat, nameCited } from "../../lib/export.js";
import { dollars, phrase, texts } from "../../lib/language.js";
import { renderMarkdown } from "../../lib/markdown.js";
import { ask } from "../../lib/runs.js";
import { useStore } from "../../lib/store.js";
import { duration, nearPlaces, short, visible } from "../../lib/text.js";
import { NOTATION } from "../notation.js";
import { STEPS } from "../steps.js";

/** Places that an abstention names. */
const MOST_NEAR = 3;

/** What an answer rests on: its sources, and what to mind of them.
 * @param {{turn: Turn, sources: Source[]}} props */
export function Facts({ turn, sources }) {
  const { key, done, question, options } = turn;
  const cited = sources.filter((source) => source.cited);
  const near = done?.outcome === "abstained" ? MOST_NEAR : 0;
  const nearest = sources.filter((source) => !source.cited).slice(0, near);
  if (!done) return html`<${Chips} turn=${key} sources=${cited} label=${phrase("facts.sources")} />`;
  return html`
    ${/* Passages that may answer can be clicked themselves. */ done.outcome !== "showed_passages" && html`<${Chips} turn=${key} sources=${cited} label=${phrase("facts.sources")} />`}
    ${cited.length > 0 && caveat(done) && html`<p class="caveat soft">${caveat(done)}</p>`}
    ${cited.some(({ citation }) => citation.since) && html`
      <p class="caveat soft">${phrase("facts.since")} <button type="button" class="named" onClick=${() => ask(question, options)}>${phrase("facts.today")}</button></p>`}
    ${nearest.length > 0 && html`<p class="caveat soft">${phrase("facts.nearest")}</p><${Chips} turn=${key} sources=${nearest} label=${phrase("facts.nearest")} />`}
    <ol class="only-print">${cited.map(({ citation }) => html`<li key=${citation.marker} value=${citation.marker}><bdi>${visible(nameCited(citation))}</bdi><blockquote dir="auto">${visible(citation.text)}</blockquote></li>`)}</ol>`;
}

/** One line about what an answer rests on, and the details folded away, the sources first. @param {{turn: Turn, cited: Source[]}} props */
export function Details({ turn, cited }) {
  const { done } = turn;
  return html`
    <details class="facts">
      <summary>${summarise(turn, cited.length).map((part) => html`<span key=${part}>${part}</span>`)}</summary>
      ${cited.length > 0 && html`<ol>${cited.map(({ citation }) => html`<li key=${citation.marker} value=${citation.marker}><button type="button" class="named" onClick=${() => openCitation(turn.key, citation.marker)}><bdi>${visible(nameCited(citation))}</bdi></button></li>`)}</ol>`}
      <${Claims} turn=${turn} />
      <${Steps} turn=${turn} />
      <p class="soft">${describeRun(done)}${/^https?:\/\//.test(done.trace_url ?? "") && html`${" · "}<a href=${done.trace_url} target="_blank" rel="noreferrer">${phrase("facts.trace")}</a>`}</p>
    </details>`;
}

/** The line of evidence. @param {Turn} turn @param {number} cited */
function summarise({ done, verification }, cited) {
  // A passage is not a statement that was checked.
  const claims = ["skipped", "quoted"].includes(verification?.status ?? "skipped") ? [] : verification?.claims ?? [];
  const held = claims.filter(({ verdict }) => verdict !== "unsupported").length;
  const outcome = done.stopped ? phrase("facts.stopped")
    : done.outcome === "showed_passages" ? phrase("facts.unsure")
    : done.abstained || done.outcome === "abstained" ? phrase("facts.not_answered")
    : cited ? phrase("sources", { count: cited }) : phrase("facts.no_sources");
  return [
    outcome,
    // What a check found says more than how likely an answer seemed before it was written.
    claims.length ? phrase("facts.held", { held, count: claims.length })
      : cited && !done.stopped && !done.abstained && done.outcome !== "answered_with_caveat" ? phrase(`confidence.${rate(done.confidence ?? 0)}`) : "",
    done.cached ? phrase("facts.cached") : "",
  ].filter(Boolean);
}

/** A probability as a reader knows it; the debugger has the figure. @param {number} confidence */
const rate = (confidence) => (confidence >= 0.8 ? "high" : confidence >= 0.6 ? "medium" : "low");

/** @param {{turn: string, sources: Source[], label: string}} props */
function Chips({ turn, sources, label }) {
  const open = useStore(({ evidence }) => (evidence && "turn" in evidence && evidence.turn === turn ? evidence.marker : null));
  if (!sources.length) return null;
  return html`
    <ul class="chips" aria-label=${label}>
      ${sources.map(({ citation }) => html`
        <li key=${citation.marker}><button type="button" class="chip" data-marker=${citation.marker} aria-pressed=${open === citation.marker}
          onClick=${() => openCitation(turn, citation.marker)}>
          <b>${citation.marker}</b> ${nearPlaces(citation) && html`<bdi class="chip-place">${short(nearPlaces(citation), 60)}</bdi> `}<bdi class="chip-title soft">${short(citation.title, 80)}</bdi></button></li>`)}
    </ul>`;
}

/** Every statement of the answer, and what its check found. @param {{turn: Turn}} props */
function Claims({ turn: { verification } }) {
  if (!verification?.claims?.length || verification.status === "skipped") return null;
  return html`
    <h3>${phrase("facts.statements")}</h3>
    <ul class="claims">
      ${verification.claims.map((claim, number) => html`
        <li key=${number}>
          <span class=${claim.verdict === "unsupported" ? "wrong" : "right"}>${phrase(`facts.${claim.verdict}`)}</span>
          : <bdi>“${renderMarkdown(claim.text.replace(/^[-*+] | ?\[[\d, ]+\]/g, ""), { ...NOTATION, text: visible })}”</bdi>
          ${claim.reason && html` <bdi class="soft">${visible(claim.reason)}</bdi>`}
        </li>`)}
    </ul>`;
}

/** The steps as they ran, with the time of each. @param {{turn: Turn}} props */
function Steps({ turn: { steps, done } }) {
  if (!steps.length) return null;
  return html`
    <h3>${phrase("facts.steps")}</h3>
    <ol class="steps">
      ${[...new Set(steps)].map((step) => html`
        <li key=${step}>${visible(texts[`steps.${step}`] ?? STEPS[step] ?? step)}${done.timings?.[step] ? html` <span class="soft">${duration(done.timings[step])}</span>` : ""}</li>`)}
    </ol>
    ${done.standalone_question && html`<p class="soft">${phrase("facts.searched")} <bdi>“${visible(done.standalone_question)}”</bdi></p>`}`;
}

function describeRun({ mode, cached, timings, cost, answered_by }) {
  return [
    visible(mode),
    timings?.total && !cached ? duration(timings.total) : "",
    answered_by && answered_by !== "local" ? phrase("facts.written_by", { model: visible(answered_by) }) : "",
    cost ? dollars(cost) : "",
  ].filter(Boolean).join(" · ");
}
