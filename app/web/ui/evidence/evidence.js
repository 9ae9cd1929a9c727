import { html, useEffect, useRef } from "../../vendor/preact-htm.js";
import { closeEvidence, fileAddress, findOpen, leaf, leafThrough, narrow, openDocument } from "../../lib/evidence.js";
import { language, phrase } from "../../lib/language.js";
import { deleteDocument } from "../../lib/library.js";
import { useStore } from "../../lib/store.js";
import { fileName, percent, place, short, visible } from "../../lib/text.js";
import { listSources } from "../../lib/turns.js";
import { Blocks } from "./blocks.js";
import { Pages } from "./pages.js";
import { Confirm } from "../confirm.js";
import { Readers } from "../readers.js";

/** The right pane: the passage that a marker stands for, where it stands in its document; or a document of the library. */
export function Evidence() {
  const evidence = useStore((state) => state.evidence);
  const turn = useStore((state) => state.thread?.turns.find(({ key }) => evidence && "turn" in evidence && key === evidence.turn));
  if (!evidence) return null;
  if (turn && "turn" in evidence) {
    const found = listSources(turn).find(({ citation }) => citation.marker === evidence.marker);
    return found ? html`<${CitationPane} turn=${turn} citation=${narrow(found.citation, evidence.nth)} nth=${evidence.nth} />` : null;
  }
  return "item" in evidence && evidence.item ? html`<${DocumentPane} item=${evidence.item} page=${evidence.page} />` : null;
}

/** @param {{turn: Turn, citation: Citation, nth?: number}} props */
function CitationPane({ turn, citation, nth }) {
  const { marker, title, outside } = citation;
  const citations = leafThrough(turn);
  const number = findOpen(citations, { marker, nth }) + 1;
  const key = `${turn.key}-${marker}-${nth}`;
  return html`
    <${Pane} name=${phrase("evidence.source", { marker })} focus=${key} heading=${html`<span class="number">${marker}</span> <bdi>${short(title, 160)}</bdi>`}
      tools=${html`
        <button type="button" class="quiet" aria-label=${phrase("evidence.previous")} title="${phrase("evidence.previous")}: [" disabled=${citations.length < 2} onClick=${() => leaf(-1)}>‹</button>
        <span class="soft">${number ? phrase("evidence.of", { number, total: citations.length }) : phrase("evidence.not_cited")}</span>
        <button type="button" class="quiet" aria-label=${phrase("evidence.next")} title="${phrase("evidence.next")}: ]" disabled=${citations.length < 2} onClick=${() => leaf(1)}>›</button>`}>
      <p class="soft where"><bdi>${visible(place(citation))}</bdi></p>
      ${outside ? html`<${Returned} citation=${citation} />` : html`<${Passage} focus=${key} citation=${citation} turn=${turn} />`}
    <//>`;
}

/** Where a passage stands in its document. @param {{focus: string, citation: Citation, turn: Turn}} props */
function Passage({ focus, citation, turn }) {
  const { source, document_id, revision, since, text } = citation;
  const sure = (citation.boxes ?? []).flatMap(({ confidence }) => confidence ?? []);
  return html`
      <p class="soft where"><${Origin} source=${source ?? ""} />${sure.length > 0 && html` · ${phrase("evidence.scan", { share: percent(Math.min(...sure)) })}`}${since !== "deleted" && html` · <a href=${fileAddress(document_id, revision)} download>${phrase("download")}</a>`}</p>
      ${since && html`<p class="soft where">${phrase(`evidence.${since}`)}</p>`}
      ${since === "deleted" ? html`<blockquote class="quote" dir="auto">${visible(text)}</blockquote>` : citation.page ? html`<${Pages} key=${focus} citation=${citation} />` : html`<${Blocks} key=${focus} document=${document_id} revision=${revision} citation=${citation} turn=${turn} />`}`;
}

/** What a function from outside returned, and for what. @param {{citation: Citation}} props */
function Returned({ citation: { outside, text } }) {
  const { server = "", function: name = "", arguments: given = "", called_at = "" } = outside ?? {};
  const time = new Date(called_at).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
  return html`
    <p class="soft where">${phrase("evidence.returned", { server: visible(server), function: visible(name), time })} <bdi>${visible(given)}</bdi></p>
    <blockquote class="quote" dir="auto">${visible(text)}</blockquote>`;
}

/** The file's name; of a page from the web, a link to it. @param {{source: string}} props */
function Origin({ source }) {
  const name = html`<bdi>${short(fileName(source), 100)}</bdi>`;
  return /^https?:\/\//.test(source) ? html`<a href=${source} target="_blank" rel="noreferrer">${name}</a>` : name;
}

/** @param {{item: LibraryDocument, page: number}} props */
function DocumentPane({ item, page }) {
  const { id, title, source, pages, media_type, unread = [] } = item;
  const mayDelete = useStore((state) => state.caller?.rights.includes("ingest"));
  const hasPages = pages && /^application\/pdf$|^image\//.test(media_type);
  const turn = (number) => openDocument(id, number);
  const jump = (event) => turn(Math.min(pages ?? 1, Math.max(1, Math.round(event.currentTarget.valueAsNumber) || 1)));
  return html`
    <${Pane} name=${phrase("evidence.document")} focus=${id} heading=${html`<bdi>${short(title || source, 160)}</bdi>`}
      tools=${hasPages && html`
        <button type="button" class="quiet" aria-label=${phrase("evidence.previous_page")} disabled=${page <= 1} onClick=${() => turn(page - 1)}>‹</button>
        <label class="soft">${phrase("evidence.page")} <input type="number" class="jump" min="1" max=${pages} value=${page} onChange=${jump} /> ${phrase("evidence.of_pages", { total: pages })}</label>
        <button type="button" class="quiet" aria-label=${phrase("evidence.next_page")} disabled=${page >= pages} onClick=${() => turn(page + 1)}>›</button>`}>
      <p class="soft where"><${Origin} source=${source} /> · <a href=${fileAddress(id)} download>${phrase("download")}</a></p>
      ${unread.length > 0 && html`<p class="soft where">${phrase("evidence.unread")} <bdi>${unread.map(({ kind, number, where }) => visible(kind === "remark" ? where : `${kind} × ${number}${where && ` (${where})`}`)).join(", ")}</bdi></p>`}
      <${Readers} item=${item} />
      ${mayDelete && html`<p class="where"><${Confirm} of=${short(title || source, 60)} act=${() => deleteDocument(id).then(closeEvidence)} /></p>`}
      ${hasPages ? html`<${Pages} key=${`${id} ${item.updated_at}`} citation=${{ document_id: id, page, title, boxes: [] }} turn=${turn} />` : html`<${Blocks} key=${`${id} ${item.updated_at}`} document=${id} />`}
    <//>`;
}

/** @param {{name: string, focus: string, heading: any, tools: any, children?: any}} props */
function Pane({ name, focus, heading, tools, children }) {
  const title = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => title.current?.focus({ preventScroll: true }), [focus]);
  return html`
    <aside class="evidence" aria-label=${name}>
      <div class="evidence-top">
        <h2 tabindex="-1" ref=${title}>${heading}</h2>
        <div class="tools">${tools}<button type="button" class="quiet" onClick=${closeEvidence}>${phrase("close")}</button></div>
      </div>
      <div class="evidence-body" tabindex="0" role="group" aria-label=${phrase("evidence.where", { name })}>${children}</div>
    </aside>`;
}
