import { html, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson } from "../../lib/api.js";
import { language, phrase } from "../../lib/language.js";
import { Dialog } from "../dialog.js";
import { DocumentReaders } from "./documents.js";

/** @typedef {{id: string, documents: number, threads: number}} Workspace */

/** The workspaces: what is in them, a new one, and the end of one. @param {{workspaces: Workspace[], load: () => void}} props */
export function WorkspaceTable({ workspaces, load }) {
  const [isNew, setIsNew] = useState(false);
  const [doomed, setDoomed] = useState(/** @type {Workspace | null} */ (null));
  const [opened, setOpened] = useState("");
  const columns = [phrase("app.workspace"), phrase("library.documents"), phrase("app.conversations")];
  const close = () => {
    setDoomed(null);
    load();
  };
  return html`
    <section>
      <h2>${phrase("keys.workspaces")}</h2>
      <p><button type="button" onClick=${() => setIsNew(true)}>${phrase("workspaces.new")}</button></p>
      <div class="table" tabindex="0" role="group" aria-label=${phrase("keys.workspaces")}><table class="figures">
        <thead><tr>${columns.map((name) => html`<th key=${name} scope="col">${name}</th>`)}<td></td></tr></thead>
        <tbody>${workspaces.map((each) => html`
          <tr key=${each.id}><th scope="row"><a href=${`/?${new URLSearchParams({ workspace: each.id })}`}>${each.id}</a></th>
            <td>${each.documents.toLocaleString(language)}</td><td>${each.threads.toLocaleString(language)}</td>
            <td>${each.documents + each.threads > 0 && html`<span class="row-actions"><button type="button" class="quiet" aria-label="${phrase("readers.who")} ${each.id}" aria-expanded=${opened === each.id} onClick=${() => setOpened(opened === each.id ? "" : each.id)}>${phrase("readers.who")}</button>
              <button type="button" class="quiet" aria-label="${phrase("delete")} ${each.id}" onClick=${() => setDoomed(each)}>${phrase("delete")}</button></span>`}</td></tr>`)}</tbody>
      </table></div>
      ${opened && html`<h3>${phrase("readers.library", { name: opened })}</h3><${DocumentReaders} key=${opened} workspace=${opened} />`}
      ${isNew && html`<${New} close=${() => setIsNew(false)} />`}
      ${doomed && html`<${End} workspace=${doomed} close=${close} />`}
    </section>`;
}

/** A workspace begins with what is first put into it, so a new one is only opened. @param {{close: () => void}} props */
function New({ close }) {
  /** @param {FormData} form */
  const open = (form) => location.assign(`/?${new URLSearchParams({ workspace: String(form.get("name")) })}`);
  return html`
    <${Dialog} title=${phrase("workspaces.new")} submit=${open} close=${close} act=${phrase("workspaces.open")}>
      <label>${phrase("workspaces.name")}<input name="name" required pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" maxlength="64" title=${phrase("workspaces.how")} autofocus /></label>
      <p class="soft">${phrase("workspaces.how")}</p>
    <//>`;
}

/** Says what deleting a workspace touches, and does it once its name is typed. What fails can be gone on with.
 * @param {{workspace: Workspace, close: () => void}} props */
function End({ workspace: { id, documents, threads }, close }) {
  const [progress, setProgress] = useState("");
  const [problem, setProblem] = useState("");
  const erase = () => {
    setProblem("");
    return attempt(
      () => empty(id, (done, total) => setProgress(phrase("workspaces.deleting", { done, total }))).then(close),
      (message) => {
        setProgress("");
        setProblem(message);
      },
    );
  };
  const touched = { documents: phrase("documents", { count: documents }), conversations: phrase("workspaces.conversations", { count: threads }) };
  return html`
    <${Dialog} title=${phrase("workspaces.end", { name: id })} submit=${erase} close=${close} act=${phrase("delete")} look="wrong" problem=${problem} busy=${progress}>
      <p>${phrase("workspaces.touches", touched)}</p>
      <label>${phrase("workspaces.type", { name: id })}<input required pattern=${id.replaceAll(".", "\\.")} autocomplete="off" autofocus /></label>
    <//>`;
}

/** Deletes every conversation, document and assistant of a workspace. @param {string} id @param {(done: number, total: number) => void} tell */
async function empty(id, tell) {
  const query = `?${new URLSearchParams({ workspace: id })}`;
  const paths = (await fetchJson(`/api/documents${query}`)).documents.map((each) => `/api/documents/${encodeURIComponent(each.id)}`);
  for (let after = ""; after !== null;) {
    const { threads, next } = await fetchJson(`/api/threads${query}&limit=100${after && `&after=${encodeURIComponent(after)}`}`);
    paths.unshift(...threads.map((each) => `/api/threads/${encodeURIComponent(each.thread_id)}`));
    after = next;
  }
  const { assistants } = await fetchJson(`/api/assistants${query}`);
  paths.push(...assistants.map((each) => `/api/assistants/${encodeURIComponent(each.assistant_id)}`));
  for (const [done, path] of paths.entries()) {
    tell(done, paths.length);
    await fetchJson(`${path}${query}`, { method: "DELETE" });
  }
}
