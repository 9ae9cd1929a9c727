import { html, useRef, useState } from "../../vendor/preact-htm.js";
import { address, fetchJson } from "../../lib/api.js";
import { setState, useStore } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { SignIn } from "../sign-in.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";

/** The debugger: the list of runs, or one run, of this service or of a file.
 * @param {{runId: string | null}} props */
export function App({ runId }) {
  const signedOut = useStore((state) => state.signedOut);
  const trouble = useStore((state) => state.trouble);
  const [file, setFile] = useState(/** @type {any} */ (null));
  if (signedOut) return html`<main class="alone"><${SignIn} /></main>`;
  return html`
    <${Top} open=${setFile} />
    <main class="debug">
      <div role="alert">${trouble && html`
        <p class="note bad">${visible(trouble)} <button type="button" class="quiet" onClick=${() => setState({ trouble: "" })}>Close</button></p>`}</div>
      ${file ? html`<${Run} key=${file.opened} file=${file} close=${() => setFile(null)} />`
        : runId ? html`<${Run} key=${runId} runId=${runId} />`
        : html`<${Runs} />`}
    </main>
    <${Status} />`;
}

/** @param {{open: (file: any) => void}} props */
function Top({ open }) {
  const workspaces = useStore((state) => state.workspaces);
  const workspace = useStore((state) => state.workspace);
  const choose = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    location.assign(`/debug?${new URLSearchParams({ workspace: value })}`);
  };
  return html`
    <header class="top">
      <a class="name" href=${address("/")}>askgraph</a>
      <nav aria-label="Pages"><a href=${address("/debug")}>Runs</a></nav>
      ${workspaces.length > 1 && html`
        <label><span class="unseen">Workspace</span>
          <select onChange=${choose}>
            ${workspaces.map(({ id }) => html`<option key=${id} value=${id} selected=${id === (workspace ?? "default")}>${id}</option>`)}
          </select></label>`}
      <${OpenFile} open=${open} />
    </header>`;
}

/** Shows the run of a file that `askgraph export` or the page wrote. @param {{open: (file: any) => void}} props */
function OpenFile({ open }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const read = async () => {
    const [chosen] = input.current?.files ?? [];
    if (!chosen || !input.current) return;
    try {
      const shown = await fetchJson("/api/bundles/open", { method: "POST", body: chosen, headers: { "Content-Type": "application/octet-stream" } });
      setState({ trouble: "" });
      open({ ...shown, name: chosen.name, opened: Date.now() });
    } catch (error) {
      setState({ trouble: /** @type {Error} */ (error).message });
    }
    input.current.value = "";
  };
  return html`
    <input type="file" id="file" hidden ref=${input} onChange=${read} />
    <button type="button" class="end" onClick=${() => input.current?.click()}>Open a bundle</button>`;
}

function Status() {
  const status = useStore((state) => state.status);
  return html`<div id="status" class="unseen" role="status">${visible(status)}</div>`;
}
