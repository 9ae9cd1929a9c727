import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { short } from "../../lib/text.js";

/** How long conversations are kept. The settings of the service say so, not this page. */
export function RetentionPolicy() {
  const [policy, setPolicy] = useState(/** @type {any} */ (null));
  useEffect(() => void attempt(async () => setPolicy(await fetchJson("/api/retention"))), []);
  if (!policy) return null;
  /** @param {number | null} days */
  const span = (days) => (days === null ? phrase("retention.ever") : phrase("retention.days", { count: days }));
  return html`
    <section>
      <h2>${phrase("retention.title")}</h2>
      <ul>
        <li>${phrase("retention.conversations", { span: span(policy.days) })}</li>
        ${Object.entries(policy.by_workspace).map(([name, days]) => html`<li key=${name}>${phrase("retention.of", { name: short(name, 64), span: span(days) })}</li>`)}
        <li>${phrase("retention.steps", { span: span(policy.steps_days) })}</li>
      </ul>
      <p class="soft">${phrase("retention.how")}</p>
    </section>`;
}
