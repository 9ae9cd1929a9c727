import { html, useState } from "../vendor/preact-htm.js";
import { address, ApiError, fetchJson, sending } from "../lib/api.js";
import { openDocument } from "../lib/evidence.js";
import { phrase } from "../lib/language.js";
import { listDocuments } from "../lib/library.js";
import { useStore } from "../lib/store.js";
import { Dialog, readNames } from "./dialog.js";

/** Who may read a document; those who look after it can change that. @param {{item: LibraryDocument}} props */
export function Readers({ item }) {
  const [edits, setEdits] = useState(false);
  const mayChange = useStore((state) => state.caller?.rights.includes("ingest"));
  const { groups } = item;
  if (!mayChange && !groups?.length) return null;
  return html`
    <p class="soft where">${groups?.length ? phrase("readers.groups", { names: groups.join(", ") }) : phrase("readers.all")}
      ${mayChange && html` <button type="button" class="quiet" aria-label="${phrase("keys.change")}: ${phrase("readers.title")}" onClick=${() => setEdits(true)}>${phrase("keys.change")}</button>`}</p>
    ${edits && html`<${Groups} item=${item} close=${() => setEdits(false)} />`}`;
}

/** @param {{item: LibraryDocument, close: () => void}} props */
function Groups({ item: { id, groups }, close }) {
  const [problem, setProblem] = useState("");
  /** @param {FormData} form */
  const save = async (form) => {
    try {
      await fetchJson(address(`/api/documents/${encodeURIComponent(id)}`), sending("PATCH", { groups: readNames(form.get("groups")) }));
      close();
      await listDocuments();
      openDocument(id);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setProblem(error.message);
    }
  };
  return html`
    <${Dialog} title=${phrase("readers.title")} submit=${save} close=${close}>
      <label>${phrase("keys.groups")}<input name="groups" defaultValue=${groups?.join(", ") ?? ""} placeholder=${phrase("keys.names")} autofocus /></label>
      <p class="soft">${phrase("readers.none")}</p>
      <p class="wrong" role="alert">${problem}</p>
      <p class="ends"><button type="button" onClick=${close}>${phrase("cancel")}</button><button type="submit" class="main">${phrase("save")}</button></p>
    <//>`;
}
