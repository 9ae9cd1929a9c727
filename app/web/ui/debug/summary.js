import { html } from "../../vendor/preact-htm.js";
import { address } from "../../lib/api.js";
import { ending, money, time, tone } from "../../lib/figures.js";
import { count, percent, visible } from "../../lib/text.js";
import { Thread } from "./thread.js";

/** What was asked, and how it ended. @param {{trace: any, status: any, again: () => void}} props */
export function Summary({ trace, status, again }) {
  const traced = status?.ended?.trace_url;
  // One line a document, however often it is cited.
  const outdated = [...new Map((status?.ended?.citations ?? []).filter(({ since }) => since).map((each) => [each.document_id, each])).values()];
  /** @type {[string, any][]} */
  const facts = [
    ["Mode", visible(trace.mode)],
    ["Answered by", trace.running ? "–" : visible(trace.answered_by || "nobody")],
    ["Confidence in what was found", !trace.running && (trace.cached || trace.path.includes("grade")) ? percent(trace.confidence) : "–"],
    ["Time", time(trace.ms)],
    ["First word after", time(trace.first_token_ms)],
    ["Searched again", trace.retries ? count(trace.retries, "time") : "no"],
    ["Cost", trace.running ? "–" : money(trace.cost)],
    ["Cache", trace.running ? "–" : trace.cached ? "answered from it" : "not used"],
    ["Asked", new Date(trace.started_at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })],
  ];
  return html`
    <div class="summary card">
      <div class="heading">
        <h1><bdi>${visible(trace.question)}</bdi></h1>
        <span class="badge ${tone({ ...trace, degraded: trace.degraded.length })}">${visible(ending(trace))}</span>
      </div>
      ${trace.standalone_question && trace.standalone_question !== trace.question && html`
        <p class="soft">Understood as <bdi>“${visible(trace.standalone_question)}”</bdi></p>`}
      ${trace.rating && html`<p class="note ${trace.rating === "down" ? "bad" : "plain"}">A reader ${trace.rating === "up" ? "finds it helpful" : `complains${trace.complaint ? `: ${trace.complaint.replaceAll("_", " ")}` : ""}`}.${trace.comment && html` <bdi>“${visible(trace.comment)}”</bdi>`}</p>`}
      ${outdated.length > 0 && html`<p class="note">Answered from a document that has changed since: ${outdated.map(({ title, since }) => `“${visible(title)}” was ${since}`).join(", ")}. <button type="button" onClick=${again}>Ask again with today's documents</button></p>`}
      ${trace.degraded.map((message, place) => html`<p class="note" key=${place}>Fell back: ${visible(message)}</p>`)}
      <dl class="facts-row">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      <${Thread} trace=${trace} />
      <p class="links">
        <a href=${address(`/t/${encodeURIComponent(trace.thread_id)}`)}>Conversation</a>
        ${trace.made_by && html`<a href=${address(`/debug/runs/${encodeURIComponent(trace.made_by)}`)}>The run that made this answer</a>`}
        ${trace.forked_from?.run_id && html`<a href=${address(`/debug/runs/${encodeURIComponent(trace.forked_from.run_id)}`)}>The run that it continues${trace.forked_from.changed?.length ? `, with ${trace.forked_from.changed.join(", ")} changed` : ""}</a>`}
        ${/^https?:\/\//.test(traced ?? "") && html`<a href=${traced} target="_blank" rel="noreferrer">Open in LangSmith</a>`}
      </p>
    </div>`;
}
