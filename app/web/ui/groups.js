import { html, useState } from "../vendor/preact-htm.js";
import { attempt } from "../lib/api.js";
import { phrase } from "../lib/language.js";
import { Dialog, readNames } from "./dialog.js";

/** Asks for the groups that may read documents, which `save` then keeps.
 * @param {{title: string, groups: string[], save: (groups: string[]) => Promise<void>, close: () => void, progress?: string}} props */
export function Groups({ title, groups, save, close, progress }) {
  const [problem, setProblem] = useState("");
  /** @param {FormData} form */
  const submit = (form) => attempt(() => save(readNames(form.get("groups"))).then(close), setProblem);
  return html`
    <${Dialog} title=${title} submit=${submit} close=${close} act=${phrase("save")} problem=${problem} busy=${progress}>
      <label>${phrase("keys.groups")}<input name="groups" defaultValue=${groups.join(", ")} placeholder=${phrase("keys.names")} autofocus /></label>
      <p class="soft">${phrase("readers.none")}</p>
    <//>`;
}
