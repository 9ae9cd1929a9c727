import { html, useRef } from "../vendor/preact-htm.js";
import { openDocument } from "../lib/evidence.js";
import { language, phrase, texts } from "../lib/language.js";
import { askAdded, askAll, askOnlyThese, cancelIngestion, changeView, chooseDocument, dismissIngestion, dismissUpload, isNarrowed, listDocuments, mine, MOST, settleTwin, timeLeft, toggleValue } from "../lib/library.js";
import { getState, setState, useStore } from "../lib/store.js";
import { ago, fileName, percent, short, visible } from "../lib/text.js";
import { pickFiles } from "./drop-zone.js";
import { icon } from "./icon.js";

/** Of the files that are on their way, so many are shown. */
const SHOWN = 5;

/** The documents of the workspace, and the files that are on their way. */
export function Library() {
  const documents = useStore((state) => state.documents);
  const library = useStore((state) => state.library);
  const chosen = useStore((state) => state.chosen);
  const mayAdd = useStore((state) => state.caller?.rights.includes("ingest"));
  /** @param {string} path */
  const folderName = (path) => path.split("/").at(-2) || "/";
  // Where it lies is a matter of the server, unless two have one name.
  const isAmbiguous = (path) => library?.folders.some((other) => other.path !== path && folderName(other.path) === folderName(path));
  return html`
    ${mayAdd && html`<button type="button" onClick=${pickFiles}>${icon("add")} ${phrase("library.add")}</button>`}
    <${Arriving} /><${Added} />
    ${library?.all === 0 && html`<p class="soft empty">${phrase("library.empty")}</p>`}
    ${library && library.all > 0 && html`<${Find} library=${library} /><${Asked} library=${library} />`}
    ${library && library.folders.length > 0 && html`
      <ul class="list" aria-label=${phrase("library.folders")}>
        ${library.folders.map(({ path, documents }) => html`
          <li class="entry" key=${path}><button type="button" class="plain-button folder" onClick=${() => changeView({ folder: path })}>
            <span class="entry-title"><bdi>${short(folderName(path), 200)}</bdi></span>
            <span class="soft">${[phrase("documents", { count: documents }), isAmbiguous(path) && visible(path.slice(library.folder.length).replace(/\/?[^/]*\/$/, ""))].filter(Boolean).join(" · ")}</span></button></li>`)}
      </ul>`}
    <ul class="list" aria-label=${phrase("library.documents")}>
      ${documents?.map((each) => html`<${Entry} key=${each.id} item=${each} chosen=${chosen.includes(each.id)} />`)}
    </ul>
    ${library?.next && html`<button type="button" class="quiet" onClick=${() => listDocuments(true)}>${phrase("show_more")}</button>`}`;
}

/** What narrows the list down: words, a folder, metadata. @param {{library: Library}} props */
function Find({ library }) {
  const view = useStore((state) => state.view);
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  const find = (event) => {
    const words = /** @type {HTMLInputElement} */ (event.currentTarget).value;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => changeView({ words }), 200);
  };
  const orders = [["name", phrase("library.name")], ["newest", phrase("library.newest")], ["largest", phrase("library.largest")]];
  // A path from the root of a file system begins with a folder without a name.
  const within = view.folder ? view.folder.slice(view.root.length, -1).split("/") : [];
  const chosen = Object.entries(view.values);
  const others = library.choices.filter(({ key, value }) => !view.values[key]?.includes(value));
  const keys = [...new Set(others.map(({ key }) => key))];
  return html`
    <div class="find">
      <input type="search" class="search" aria-label=${phrase("library.search")} placeholder=${phrase("conversations.find")} value=${view.words} onInput=${find} />
    </div>
    ${within.length > 0 && html`
      <nav class="folders" aria-label=${phrase("library.folder")}>
        <button type="button" class="quiet" onClick=${() => changeView({ folder: "" })}>${phrase("composer.all")}</button>
        ${within.map((name, depth) => name && html` › <button type="button" class="quiet" aria-current=${depth === within.length - 1 ? "page" : undefined}
          onClick=${() => changeView({ folder: `${view.root}${within.slice(0, depth + 1).join("/")}/` })}><bdi>${short(name, 40)}</bdi></button>`)}
      </nav>`}
    ${chosen.map(([key, values]) => html`<${Values} key=${key} name=${key} choices=${values.map((value) => ({ value }))} pressed=${true} />`)}
    ${library.all > 1 && html`
      <details class="filters"><summary class="soft">${phrase("library.filter")}</summary>
        <select aria-label=${phrase("library.sort")} value=${view.sort} onChange=${(event) => changeView({ sort: /** @type {HTMLSelectElement} */ (event.currentTarget).value })}>
          ${orders.map(([sort, label]) => html`<option key=${sort} value=${sort} selected=${sort === view.sort}>${label}</option>`)}
        </select>
        ${keys.map((key) => html`<${Values} key=${key} name=${key} choices=${others.filter((each) => each.key === key)} pressed=${false} />`)}</details>`}`;
}

/** Values of one key of the metadata. @param {{name: string, choices: {value: Scalar, documents?: number}[], pressed: boolean}} props */
const Values = ({ name, choices, pressed }) => html`
  <ul class="chips" aria-label=${short(name, 60)}>
    <li class="soft"><bdi>${short(name, 30)}</bdi></li>
    ${choices.map(({ value, documents }) => html`
      <li key=${String(value)}><button type="button" class="chip" aria-pressed=${pressed} onClick=${() => toggleValue(name, value)}>
        <bdi>${short(value, 40)}</bdi> <span class="soft">${pressed ? "✕" : documents?.toLocaleString(language)}</span></button></li>`)}
  </ul>`;

/** Which documents answers come from, and how to change that. @param {{library: Library}} props */
function Asked({ library }) {
  const view = useStore((state) => state.view);
  const chosen = useStore((state) => state.chosen.length);
  const only = useStore((state) => state.only);
  const documents = phrase("documents", { count: library.all });
  return html`
    ${(only || chosen > 0) && html`<p class="soft">${only ? phrase("library.from_only", { name: short(only.name), documents: only.documents === null ? "" : phrase("documents", { count: only.documents }) })
      : phrase("library.from_chosen", { chosen, documents })}${" "}
      <button type="button" class="quiet" onClick=${askAll}>${phrase("library.use_all")}</button></p>`}
    ${isNarrowed(view) && only?.view !== view && (library.total && (!view.words || library.total <= MOST)
      ? html`<button type="button" onClick=${askOnlyThese}>${phrase("library.ask_only", { count: library.total })}</button>`
      : html`<p class="soft">${library.total ? phrase("documents", { count: library.total }) : phrase("library.none_found")}</p>`)}`;
}

/** The files that are on their way, and how long they will take. */
function Arriving() {
  const uploads = useStore((state) => state.uploads);
  const ingestions = useStore((state) => state.ingestions);
  const dismissed = useStore((state) => state.dismissed);
  // What has arrived is among the documents, or was deleted since; what has failed or replaced another says so.
  const shown = ingestions.filter(({ ingestion_id, state, report }) => !dismissed.includes(ingestion_id) && (state !== "done" || (report?.status === "updated" && mine.has(ingestion_id))));
  const waiting = uploads.filter(({ error }) => !error).length + shown.filter(({ ended_at }) => !ended_at).length;
  if (!uploads.length && !shown.length) return null;
  // What happens comes first, what waits for its turn last.
  const rows = [
    ...uploads.map((each) => ({ last: !each.error && !each.share, row: html`<${Sending} key=${each.key} upload=${each} />` })),
    ...shown.map((each) => ({ last: each.state === "queued", row: html`<${Reading} key=${each.ingestion_id} ingestion=${each} />` })),
  ].sort((one, other) => Number(one.last) - Number(other.last));
  return html`
    <section class="arriving" aria-label=${phrase("library.arriving")}>
      ${waiting > 1 && html`<p class="soft" id="arriving-left">${[phrase("library.waiting", { count: waiting }), timeLeft("files", waiting)].filter(Boolean).join(" · ")}</p>`}
      <ul class="list">${rows.slice(0, SHOWN).map(({ row }) => row)}</ul>
      ${rows.length > SHOWN && html`<p class="soft">${phrase("library.more", { count: rows.length - SHOWN })}</p>`}
    </section>`;
}

/** What to do with files that have arrived. */
function Added() {
  const added = useStore((state) => state.added.length);
  const twins = useStore((state) => state.twins);
  return html`
    ${added > 0 && html`<p><button type="button" class="main" onClick=${askAdded}>${phrase("library.ask_added", { count: added })}</button></p>`}
    ${twins.map((old) => html`
      <p class="note" key=${old.id} role="alert"><span>${phrase("library.twice", { name: short(old.title || old.source, 80), source: short(old.source, 120) })}</span>${" "}
        <button type="button" onClick=${() => settleTwin(old, true)}>${phrase("library.replace")}</button> <button type="button" onClick=${() => settleTwin(old, false)}>${phrase("library.keep")}</button></p>`)}`;
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
  const left = progress?.total ? timeLeft(`${id} ${progress.stage}`, progress.total - progress.done) : "";
  const so_far = progress?.total ? phrase("library.done_of", { stage, done: progress.done, total: progress.total }) : stage;
  return html`
    <li class="arrival ${state === "failed" ? "failed" : ""}" data-state=${state}>
      <span class="entry-title"><bdi>${short(fileName(source))}</bdi></span>
      ${ended_at ? html`<span class=${state === "failed" ? "wrong" : "soft"}>${visible(report?.error || [state === "done" && phrase("library.replaced"), report?.note].filter(Boolean).join(" · ") || state)}</span> <button type="button" class="quiet" onClick=${() => dismissIngestion(id)}>${phrase("close")}</button>`
        : html`
          <span class="soft">${[so_far, left].filter(Boolean).join(" · ")}</span>
          <progress aria-label=${phrase("library.progress", { name: short(fileName(source), 60) })} value=${known} max="1"></progress>
          <button type="button" class="quiet" aria-label="${phrase("library.give_up")} ${short(fileName(source), 60)}" onClick=${() => cancelIngestion(id)}>${phrase("library.give_up")}</button>`}
    </li>`;
}

/** @param {{item: LibraryDocument, chosen: boolean}} props */
function Entry({ item, chosen }) {
  const { id, title, source, pages, characters, to_embed, groups, updated_at } = item;
  const name = short(title || fileName(source), 200);
  const kind = (/\.(\w{1,5})$/.exec(source)?.[1] ?? "text").toUpperCase();
  const size = pages ? phrase("pages", { count: pages }) : kilobytes.format(Math.ceil(characters / 1000));
  const facts = [visible(kind), size, ago(updated_at), to_embed ? phrase("library.to_index", { count: to_embed }) : "", groups?.join(", ")];
  // The list cuts what is long; the tip has the whole of it.
  const show = (event) => setState({ tip: { anchor: /** @type {Element} */ (event.currentTarget), title: title || source, text: source } });
  const hide = () => { if (getState().tip) setState({ tip: null }); };
  return html`
    <li class="entry">
      <label class="choice"><input type="checkbox" aria-label=${phrase("library.answer_from", { name: short(name, 80) })} checked=${chosen} onChange=${() => chooseDocument(id)} /></label>
      <button type="button" class="plain-button" aria-describedby="tip" onClick=${() => openDocument(id)} onMouseEnter=${show} onFocus=${show} onMouseLeave=${hide} onBlur=${hide}>
        <span class="entry-title"><bdi>${name}</bdi></span>
        <span class="soft">${facts.filter(Boolean).join(" · ")}</span>
      </button>
    </li>`;
}

const kilobytes = new Intl.NumberFormat(language, { style: "unit", unit: "kilobyte", maximumSignificantDigits: 2 });
