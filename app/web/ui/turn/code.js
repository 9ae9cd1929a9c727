import { html, useState } from "../../vendor/preact-htm.js";
import { phrase } from "../../lib/language.js";
import { visible } from "../../lib/text.js";

/** Code of an answer, with a button that copies it. @param {{text: string}} props */
export function Code({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
  return html`
    <div class="code-block"><pre tabindex="0"><code>${visible(text)}</code></pre>
      ${navigator.clipboard && html`<button type="button" onClick=${copy}>${phrase(copied ? "actions.copied" : "actions.copy_code")}</button>`}</div>`;
}
