import { html, useRef } from "../vendor/preact-htm.js";
import { openDocument } from "../lib/evidence.js";
import { phrase, texts } from "../lib/language.js";
import { addFiles, cancelIngestion, chooseDocument, deleteDocument, dismissIngestion, dismissUpload } from "../lib/library.js";
import { setState, useStore } from "../lib/store.js";
import { fileName, percent, short, visible } from "../lib/text.js";
import { Confirm } from "./confirm.js";

/** The documents of the workspace, and the files that are on their way. */
export function Library() {
  const documents = useStore((state) => state.documents);
  const chosen = useStore((state) => state.chosen);
  const uploads = useStore((state) => state.uploads);
  const ingestions = useStore((state) => state.ingestions);
  const dismissed = useStore((state) => state.dismissed);
  const mayAdd = useStore((state) => state.caller?.rights.includes("ingest"));
  // What has arrived is among the documents, or was deleted since; what has failed stays, with the reason.
  const shown = ingestions.filter((each) => !dismissed.includes(each.ingestion_id) && each.state !== "done");
  return html`
    ${mayAdd && html`<${AddFiles} />`}
    ${(uploads.length > 0 || shown.length > 0) && html`
      <ul class="list arriving" aria-label=${phrase("library.arriving")}>
        ${uploads.map((each) => html`<${Sending} key=${each.key} upload=${each} />`)}
        ${shown.map((each) => html`<${Reading} key=${each.ingestion_id} ingestion=${each} />`)}
      </ul>`}
    ${documents?.length === 0 && html`<p class="soft empty">${phrase("library.empty")}</p>`}
    ${documents && documents.length > 0 && html`
      <p class="soft">${chosen.length ? html`${phrase("library.from_chosen", { chosen: chosen.length, documents: phrase("documents", { count: documents.length }) })}${" "}
        <button type="button" class="quiet" onClick=${() => setState({ chosen: [] })}>${phrase("library.use_all")}</button>`
        : phrase("library.from_all", { documents: phrase("documents", { count: documents.length }) })}</p>`}
    <ul class="list" aria-label=${phrase("library.documents")}>
      ${documents?.map((each) => html`<${Entry} key=${each.id} item=${each} chosen=${chosen.includes(each.id)} mayDelete=${mayAdd} />`)}
    </ul>`;
}

function AddFiles() {
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  // The event's own input: this one may be drawn anew while its dialog of files is open.
  /** @param {{currentTarget: HTMLInputElement}} event */
  const add = ({ currentTarget: input }) => {
    addFiles([...(input.files ?? [])]);
    input.value = "";
  };
  return html`
    <button type="button" onClick=${() => picker.current?.click()}>${phrase("library.add")}</button>
    <input id="files" type="file" multiple hidden ref=${picker} onChange=${add} />`;
}

/** @param {{upload: Upload}} props */
function Sending({ upload: { key, name, share, error } }) {
  return html`
    <li class="arrival ${error ? "failed" : ""}">
      <span class="entry-title"><bdi>${short(name)}</bdi></span>
      ${error ? html`<span class="wrong">${visible(error)}</span> <button type="button" class="quiet" onClick=${() => dismissUpload(key)}>${phrase("close")}</button>`
        : html`<span class="soft">${share ? phrase("library.sending", { share: percent(share) }) : phrase("library.unsent")}</span><progress aria-label=${phrase("library.sending_label")} value=${share} max="1"></progress>`}
    </li>`;
}

/** @param {{ingestion: Ingestion}} props */
function Reading({ ingestion: { ingestion_id: id, source, state, report, progress, ended_at } }) {
  const known = progress?.total ? progress.done / progress.total : undefined;
  const stage = texts[`stages.${progress?.stage}`] ?? state;
  return html`
    <li class="arrival ${state === "failed" ? "failed" : ""}" data-state=${state}>
      <span class="entry-title"><bdi>${short(fileName(source))}</bdi></span>
      ${ended_at ? html`<span class=${state === "failed" ? "wrong" : "soft"}>${visible(report?.error || report?.note || state)}</span> <button type="button" class="quiet" onClick=${() => dismissIngestion(id)}>${phrase("close")}</button>`
        : html`
          <span class="soft">${progress?.total ? phrase("library.done_of", { stage, done: progress.done, total: progress.total }) : stage}</span>
          <progress aria-label=${phrase("library.progress", { name: short(fileName(source), 60) })} value=${known} max="1"></progress>
          <button type="button" class="quiet" aria-label="${phrase("library.give_up")} ${short(fileName(source), 60)}" onClick=${() => cancelIngestion(id)}>${phrase("library.give_up")}</button>`}
    </li>`;
}

/** @param {{item: LibraryDocument, chosen: boolean, mayDelete: boolean}} props */
function Entry({ item, chosen, mayDelete }) {
  const { id, title, source, pages, chunks, to_embed, groups } = item;
  const name = short(title || fileName(source), 200);
  const kind = (/\.(\w{1,5})$/.exec(source)?.[1] ?? "text").toUpperCase();
  const size = pages ? phrase("pages", { count: pages }) : phrase("passages", { count: chunks });
  return html`
    <li class="entry">
      <label class="choice"><input type="checkbox" aria-label=${phrase("library.answer_from", { name: short(name, 80) })} checked=${chosen} onChange=${() => chooseDocument(id)} /></label>
      <button type="button" class="plain-button" onClick=${() => openDocument(id)}>
        <span class="entry-title"><bdi>${name}</bdi></span>
        <span class="soft">${visible(kind)} · ${size}${to_embed ? ` · ${phrase("library.to_index", { count: to_embed })}` : ""}${groups?.length ? ` · ${groups.join(", ")}` : ""}</span>
      </button>
      ${mayDelete && html`<span class="entry-actions"><${Confirm} of=${short(name, 60)} act=${() => deleteDocument(id)} /></span>`}
    </li>`;
}
