import { html, useState } from "../vendor/preact-htm.js";
import { address, fetchJson, sending } from "../lib/api.js";
import { openDocument } from "../lib/evidence.js";
import { phrase } from "../lib/language.js";
import { listDocuments } from "../lib/library.js";
import { useStore } from "../lib/store.js";
import { Groups } from "./groups.js";

/** Who may read a document; those who look after it can change that. @param {{item: LibraryDocument}} props */
export function Readers({ item }) {
  const [edits, setEdits] = useState(false);
  const mayChange = useStore((state) => state.caller?.rights.includes("ingest"));
  const { id, groups } = item;
  if (!mayChange && !groups?.length) return null;
  /** @param {string[]} names */
  const save = async (names) => {
    await fetchJson(address(`/api/documents/${encodeURIComponent(id)}`), sending("PATCH", { groups: names }));
    await listDocuments();
    openDocument(id);
  };
  return html`
    <p class="soft where">${groups?.length ? phrase("readers.groups", { names: groups.join(", ") }) : phrase("readers.all")}
      ${mayChange && html` <button type="button" class="quiet" aria-label="${phrase("keys.change")}: ${phrase("readers.title")}" onClick=${() => setEdits(true)}>${phrase("keys.change")}</button>`}</p>
    ${edits && html`<${Groups} title=${phrase("readers.title")} groups=${groups ?? []} save=${save} close=${() => setEdits(false)} />`}`;
}
