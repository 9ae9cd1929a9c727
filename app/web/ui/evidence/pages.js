import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { attempt } from "../../lib/api.js";
import { findWords, pageAddress } from "../../lib/evidence.js";
import { phrase } from "../../lib/language.js";
import { setState, useStore } from "../../lib/store.js";
import { short, visible } from "../../lib/text.js";
import { Blocks } from "./blocks.js";

/** The pages of a PDF that a citation quotes, with a box around every line of it; or where words stand that somebody
 * looks for. `turn` shows the page of a document that is leafed through.
 * @param {{citation: Citation, turn?: (page: number) => void}} props */
export function Pages({ citation, turn }) {
  const [failed, setFailed] = useState(false);
  const [hit, setHit] = useState(/** @type {Found | null} */ (null));
  const { document_id, revision, since, page } = citation;
  const wide = useStore((state) => state.wide);
  const show = (found) => {
    setHit(found);
    if (found) turn?.(found.page);
  };
  // Who leafs on from a place that was found leaves it.
  const found = hit && (!turn || hit.page === page) ? hit : null;
  const boxes = (found ?? citation).boxes ?? [];
  const numbers = [...new Set(boxes.map((box) => box.page))];
  // Where a page cannot be drawn, the text is shown.
  if (failed) return html`<${Blocks} document=${document_id} revision=${revision} citation=${citation.text ? citation : undefined} />`;
  return html`
    ${citation.text && html`<details class="quoted"><summary class="soft">${phrase("evidence.as_text")}</summary>
      <blockquote class="quote" dir="auto">${visible(citation.text)}</blockquote></details>`}
    <div class="find-words">
      ${!since && html`<${Find} document=${document_id} from=${page ?? 1} show=${show} />`}
      <button type="button" class="quiet" aria-pressed=${wide} onClick=${() => setState({ wide: !wide })}>${phrase("evidence.zoom")}</button>
    </div>
    ${(numbers.length ? numbers : [page ?? 1]).map((number, place) => html`
      <${Page} key=${number} citation=${citation} number=${number} boxes=${boxes.filter((box) => box.page === number)}
        isFirst=${place === 0} wide=${wide} fail=${() => setFailed(true)} />`)}`;
}

/** Looks for words in a document, from a page on. @param {{document: string, from: number, show: (found: Found | null) => void}} props */
function Find({ document, from, show }) {
  const [found, setFound] = useState(/** @type {Found[] | null} */ (null));
  const [at, setAt] = useState(0);
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);
  /** @param {Found[] | null} all @param {number} place */
  const go = (all, place) => {
    setFound(all);
    setAt(place);
    show(all?.[place] ?? null);
  };
  const find = async (words) => {
    if (!words) return go(null, 0);
    await attempt(async () => {
      const all = await findWords(document, words);
      go(all, Math.max(0, all.findIndex(({ page }) => page >= from)));
    }, () => go([], 0));
  };
  const type = (event) => {
    const words = /** @type {HTMLInputElement} */ (event.currentTarget).value.trim();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => find(words), 200);
  };
  const total = found?.length ?? 0;
  const leaf = (step) => found && total && go(found, (at + step + total) % total);
  const onKey = (event) => {
    if (event.key === "Enter") leaf(event.shiftKey ? -1 : 1);
    // Ends the search, and closes the pane only with the next.
    if (event.key === "Escape" && event.currentTarget.value) {
      event.stopPropagation();
      event.currentTarget.value = "";
      go(null, 0);
    }
  };
  return html`
    <input type="search" class="search" aria-label=${phrase("evidence.find")} placeholder=${phrase("evidence.find")} onInput=${type} onKeyDown=${onKey} />
    ${found && html`
      <span class="soft" role="status">${total ? phrase("evidence.of", { number: at + 1, total }) : phrase("evidence.not_found")}</span>
      <button type="button" class="quiet" aria-label=${phrase("evidence.previous_place")} disabled=${total < 2} onClick=${() => leaf(-1)}>‹</button>
      <button type="button" class="quiet" aria-label=${phrase("evidence.next_place")} disabled=${total < 2} onClick=${() => leaf(1)}>›</button>
      ${total > 1 && html`<details><summary class="soft">${phrase("evidence.places")}</summary>
        <ol class="list">${found.map((each, place) => html`<li key=${each.start}><button type="button" class="plain-button" aria-current=${place === at ? "true" : undefined} onClick=${() => go(found, place)}>
          <span class="soft">${phrase("page", { page: each.page })}</span> <bdi>${visible(each.text)}</bdi></button></li>`)}</ol></details>`}`}`;
}

/** @param {{citation: Citation, number: number, boxes: Box[],
 *   isFirst: boolean, wide: boolean, fail: () => void}} props */
function Page({ citation: { document_id, revision, title }, number, boxes, isFirst, wide, fail }) {
  const figure = useRef(/** @type {HTMLElement | null} */ (null));
  const [loaded, setLoaded] = useState(false);
  useEffect(() => {
    if (loaded && isFirst) figure.current?.querySelector("rect")?.scrollIntoView({ block: "center" });
  }, [loaded, JSON.stringify(boxes)]);
  return html`
    <figure class="sheet ${loaded ? "" : "loading"} ${wide ? "wide" : ""}" ref=${figure}>
      <figcaption class="soft">${phrase(loaded ? "evidence.sheet" : "evidence.sheet_loading", { page: number })}</figcaption>
      <div class="picture">
        <img src=${pageAddress(document_id, number, revision, wide)} alt=${phrase("evidence.picture", { page: number, title: short(title, 100) })} onLoad=${() => setLoaded(true)} onError=${fail} />
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          ${boxes.map(({ x, y, width, height }, place) => html`<rect key=${place} x=${x} y=${y} width=${width} height=${height} />`)}
        </svg>
      </div>
    </figure>`;
}
