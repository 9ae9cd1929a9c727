import { html, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson } from "../../lib/api.js";
import { money, score, time } from "../../lib/figures.js";
import { count, percent, visible } from "../../lib/text.js";
import { STEPS } from "../steps.js";
import { Candidates } from "./candidates.js";
import { nameStep } from "./waterfall.js";

/** One step: what it changed, what it looked at, whom it asked.
 * @param {{trace: any, step: any, choose: (step: string) => void, edit: (wish: any) => void}} props */
export function Step({ trace, step, choose, edit }) {
  const place = trace.steps.indexOf(step);
  const go = (by) => trace.steps[place + by] && choose(trace.steps[place + by].name);
  return html`
    <div class="heading">
      <h2>${nameStep(step)}</h2>
      <span class="soft grow">${[STEPS[step.node], step.ms === null ? "" : time(step.ms), step.next.length ? `then ${step.next.join(", ")}` : "the end"].filter(Boolean).join(" · ")}</span>
      <button type="button" class="quiet" disabled=${place < 1} onClick=${() => go(-1)}>Previous</button>
      <button type="button" class="quiet" disabled=${place + 1 === trace.steps.length} onClick=${() => go(1)}>Next</button>
    </div>
    ${step.warnings.map((warning, number) => html`<p class="note" key=${number}>${visible(warning)}</p>`)}
    ${step.grade && html`<${Grade} grade=${step.grade} />`}
    ${step.claims.length > 0 && html`<${Claims} claims=${step.claims} />`}
    ${step.candidates.length > 0 && html`<h3>Passages</h3><${Candidates} candidates=${step.candidates} />`}
    <${Changes} changed=${step.changed} />
    ${step.calls.length > 0 && html`<${Calls} step=${step} edit=${trace.running || !step.prompt ? null : edit} />`}
    ${!trace.taped && trace.untaped && html`<p class="soft">${visible(trace.untaped)}</p>`}
    ${!trace.running && html`<${State} runId=${trace.run_id} step=${step} edit=${edit} />`}`;
}

/** @param {{changed: {field: string, text: string}[], title?: string}} props */
export function Changes({ changed, title = "What changed" }) {
  return html`
    <h3>${title}</h3>
    ${changed.length ? html`<dl class="changes">${changed.map(({ field, text }) => html`<div key=${field}><dt class="code">${visible(field)}</dt><dd><bdi>${visible(text)}</bdi></dd></div>`)}</dl>`
      : html`<p class="soft">Nothing.</p>`}`;
}

/** The confidence between the thresholds. @param {{grade: any}} props */
function Grade({ grade }) {
  const { confidence, sufficient, caveat, missing, text } = grade;
  return html`
    <h3>Grade</h3>
    <svg class="scale" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" x="0" y="3" width="100" height="4" />
      <rect class="value" x="0" y="3" width=${100 * confidence} height="4" />
      <rect class="mark" x=${100 * caveat - 0.2} y="0" width=".5" height="10" /><rect class="mark" x=${100 * sufficient - 0.2} y="0" width=".5" height="10" />
    </svg>
    <p>${visible(text)}</p>
    <p class="soft">With a caveat from ${score(caveat)}, at once from ${score(sufficient)}.${missing.length ? ` Words that no source has: ${visible(missing.join(", "))}.` : ""}</p>`;
}

/** @param {{claims: any[]}} props */
function Claims({ claims }) {
  return html`
    <h3>Statements</h3>
    <ul class="claims">
      ${claims.map((claim, place) => html`
        <li key=${place}><span class=${claim.verdict === "unsupported" ? "wrong" : "right"}>${{ supported: "✓ supported", quoted: "quoted" }[claim.verdict] ?? "✗ not supported"}</span> (${percent(claim.score)}):
          ${" "}<bdi>“${visible(claim.text)}”</bdi> <bdi class="soft">${visible(claim.reason)}</bdi></li>`)}
    </ul>`;
}

/** @param {{step: any, edit: ((wish: any) => void) | null}} props */
function Calls({ step, edit }) {
  return html`
    <h3>${count(step.calls.length + step.more_calls, "call")}</h3>
    <ul class="calls">
      ${step.calls.map((call, place) => html`
        <li key=${place}>
          <b>${visible(call.port)}</b> <span class="code">${visible(call.method)}</span>
          ${call.input_tokens > 0 && html` <span class="soft">${count(call.input_tokens, "token")} in, ${call.output_tokens.toLocaleString("en")} out, ${money(call.cost)}${call.estimated ? ", estimated" : ""}</span>`}
          ${call.failures.length > 0 && html`<ol class="soft">${call.failures.map((failure, number) => html`<li key=${number}>${visible(`Attempt ${number + 1} failed: ${failure}`)}</li>`)}</ol>`}
          ${call.error ? html`<p class="note bad">${visible(call.error)}</p>` : html`<p class="soft"><bdi>${visible(call.summary)}</bdi></p>`}
          ${call.messages.length > 0 && html`
            <details><summary>Prompt and reply</summary>
              ${call.messages.map(({ role, content }, number) => html`<div key=${number} class="heading"><h4>${visible(role)}</h4>${edit && role === "system" && html`
                <button type="button" class="quiet" onClick=${() => edit({ place: `node ${step.name}`, rows: [[`profile.prompts.${step.node}`, content]] })}>Edit this prompt</button>`}</div><pre tabindex="0" dir="auto">${visible(content)}</pre>`)}
              ${call.thoughts && html`<h4>thoughts</h4><pre tabindex="0" dir="auto">${visible(call.thoughts)}</pre>`}
              <h4>reply</h4><pre tabindex="0" dir="auto">${visible(call.reply)}</pre>
            </details>`}
        </li>`)}
    </ul>
    ${step.more_calls > 0 && html`<p class="soft">${count(step.more_calls, "more call")} not shown.</p>`}`;
}

/** The whole state after the step. What a branch can set leads to the form. @param {{runId: string, step: any, edit: (wish: any) => void}} props */
function State({ runId, step, edit }) {
  const [state, setState] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const read = (event) => {
    if (!event.currentTarget.open || state) return;
    fetchJson(address(`/api/runs/${encodeURIComponent(runId)}/states/${encodeURIComponent(step.name)}`)).then(
      setState, (error) => setProblem(error.message));
  };
  /** From where on a branch reads the field; of a step that is run again that is what stood there before. @param {string} field */
  const place = (field) => {
    const places = state.settable.filter(({ name }) => name === field);
    if (places.some(({ after }) => after)) return `after ${step.name}`;
    return places.length && !step.changed.some((each) => each.field === field) ? `node ${step.name}` : null;
  };
  return html`
    <details class="state" onToggle=${read}>
      <summary>The whole state after this step</summary>
      ${problem && html`<p class="note bad">${visible(problem)}</p>`}
      ${state && html`<dl class="changes">${Object.entries(state.values).map(([field, value]) => html`<div key=${field}><dt class="code">${visible(field)}</dt>
        <dd><${Value} value=${value} />${place(field) && html` <button type="button" class="quiet" aria-label="Change ${field}" onClick=${() => edit({ place: place(field), rows: [[field, typeof value === "string" ? value : JSON.stringify(value)]] })}>Change</button>`}</dd></div>`)}</dl>`}
    </details>`;
}

/** @param {{value: any}} props */
function Value({ value }) {
  if (value === null || value === "" || (typeof value === "object" && !Object.keys(value).length)) return html`<span class="soft">nothing</span>`;
  if (typeof value !== "object") return html`<bdi>${visible(value)}</bdi>`;
  const size = Array.isArray(value) ? count(value.length, "item") : count(Object.keys(value).length, "field");
  return html`<details><summary>${size}</summary><pre tabindex="0">${visible(JSON.stringify(value, null, 1))}</pre></details>`;
}
