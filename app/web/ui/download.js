import { html, useState } from "../vendor/preact-htm.js";
import { attempt } from "../lib/api.js";
import { printAll } from "../lib/conversations.js";
import { readConversation, save, writeConversation } from "../lib/export.js";
import { phrase } from "../lib/language.js";
import { short } from "../lib/text.js";

/** Saves a conversation as a file; prints the one that is shown. @param {{id: string, title: string, current: boolean}} props */
export function Download({ id, title, current }) {
  const [busy, setBusy] = useState(false);
  const choose = async (event) => {
    const choice = /** @type {HTMLSelectElement} */ (event.currentTarget);
    const kind = choice.value;
    choice.value = "";
    setBusy(true);
    if (kind === "print") await printAll();
    else await attempt(async () => {
      const { title, turns } = await readConversation(id);
      if (kind === "md") save(title, writeConversation(title, turns), kind);
      if (kind === "html") save(title, await (await import("./saved-page.js")).writePage(title, turns), kind);
    });
    setBusy(false);
  };
  return html`
    <select class="quiet" disabled=${busy} aria-label="${phrase("download")} ${short(title, 60)}" onChange=${choose}>
      <option value="">${phrase("download")}</option><option value="md">Markdown</option><option value="html">HTML</option>
      ${current && html`<option value="print">${phrase("conversations.print")}</option>`}
    </select>`;
}
