import { html } from "../../vendor/preact-htm.js";
import { address } from "../../lib/api.js";
import { setState, useStore } from "../../lib/store.js";
import { visible } from "../../lib/text.js";
import { SignIn } from "../sign-in.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";

/** The debugger: the list of runs, or one run, of this service.
 * @param {{runId: string | null}} props */
export function App({ runId }) {
  const signedOut = useStore((state) => state.signedOut);
  const trouble = useStore((state) => state.trouble);
  if (signedOut) return html`<main class="alone"><${SignIn} /></main>`;
  return html`
    <${Top} />
    <main class="debug">
      <div role="alert">${trouble && html`
        <p class="note bad">${visible(trouble)} <button type="button" class="quiet" onClick=${() => setState({ trouble: "" })}>Close</button></p>`}</div>
      ${runId ? html`<${Run} key=${runId} runId=${runId} />`
        : html`<${Runs} />`}
    </main>
    <${Status} />`;
}

function Top() {
  const workspaces = useStore((state) => state.workspaces);
  const workspace = useStore((state) => state.workspace);
  const choose = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    location.assign(`/debug?${new URLSearchParams({ workspace: value })}`);
  };
  return html`
    <header class="top">
      <a class="name" href=${address("/")}>askgraph</a>
      <nav aria-label="Pages"><a href=${address("/debug")}>Runs and sets</a></nav>
      ${workspaces.length > 1 && html`
        <label><span class="unseen">Workspace</span>
          <select onChange=${choose}>
            ${workspaces.map(({ id }) => html`<option key=${id} value=${id} selected=${id === (workspace ?? "default")}>${id}</option>`)}
          </select></label>`}
    </header>`;
}

function Status() {
  const status = useStore((state) => state.status);
  return html`<div id="status" class="unseen" role="status">${visible(status)}</div>`;
}
