import { html } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { useStore } from "../lib/store.js";

/** Chooses the workspace; the address keeps it. Who has one only is not asked. */
export function Workspaces() {
  const workspaces = useStore((state) => state.workspaces);
  const workspace = useStore((state) => state.workspace);
  const shown = workspace ?? (workspaces.find(({ id }) => id === "default") ?? workspaces[0])?.id;
  const all = workspaces.some(({ id }) => id === shown) ? workspaces : [...workspaces, { id: shown ?? "", documents: 0, threads: 0 }];
  if (all.length < 2) return null;
  const choose = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    location.assign(`/?${new URLSearchParams({ workspace: value })}`);
  };
  return html`
    <label class="workspace"><span class="soft">${phrase("app.workspace")}</span>
      <select onChange=${choose} value=${shown}>
        ${all.map(({ id, documents }) => html`<option key=${id} value=${id} selected=${id === shown}>${id} (${phrase("documents", { count: documents })})</option>`)}
      </select></label>`;
}
