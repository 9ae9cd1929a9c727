import { html, useRef, useState } from "../vendor/preact-htm.js";
import { pageAddress } from "../lib/evidence.js";
import { phrase } from "../lib/language.js";
import { setState, useStore } from "../lib/store.js";
import { short, visible } from "../lib/text.js";
import { Blocks } from "./blocks.js";

/** The pages of a PDF that a citation quotes, with a box around every line of it.
 * @param {{citation: Citation}} props */
export function Pages({ citation }) {
  const [failed, setFailed] = useState(false);
  const { document_id, revision, boxes = [], page } = citation;
  const wide = useStore((state) => state.wide);
  const numbers = [...new Set(boxes.map((box) => box.page))];
  // Where a page cannot be drawn, the text is shown.
  if (failed) return html`<${Blocks} document=${document_id} revision=${revision} citation=${citation.text ? citation : undefined} />`;
  return html`
    ${citation.text && html`<details class="quoted"><summary class="soft">${phrase("evidence.as_text")}</summary>
      <blockquote class="quote" dir="auto">${visible(citation.text)}</blockquote></details>`}
    <p><button type="button" class="quiet" aria-pressed=${wide} onClick=${() => setState({ wide: !wide })}>${phrase("evidence.zoom")}</button></p>
    ${(numbers.length ? numbers : [page ?? 1]).map((number, place) => html`
      <${Page} key=${number} citation=${citation} number=${number} boxes=${boxes.filter((box) => box.page === number)}
        isFirst=${place === 0} wide=${wide} fail=${() => setFailed(true)} />`)}`;
}

/** @param {{citation: Citation, number: number, boxes: Box[],
 *   isFirst: boolean, wide: boolean, fail: () => void}} props */
function Page({ citation: { document_id, revision, title }, number, boxes, isFirst, wide, fail }) {
  const figure = useRef(/** @type {HTMLElement | null} */ (null));
  const [loaded, setLoaded] = useState(false);
  const show = () => {
    setLoaded(true);
    if (isFirst) figure.current?.querySelector("rect")?.scrollIntoView({ block: "center" });
  };
  return html`
    <figure class="sheet ${loaded ? "" : "loading"} ${wide ? "wide" : ""}" ref=${figure}>
      <figcaption class="soft">${phrase(loaded ? "evidence.sheet" : "evidence.sheet_loading", { page: number })}</figcaption>
      <div class="picture">
        <img src=${pageAddress(document_id, number, revision, wide)} alt=${phrase("evidence.picture", { page: number, title: short(title, 100) })} onLoad=${show} onError=${fail} />
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          ${boxes.map(({ x, y, width, height }, place) => html`<rect key=${place} x=${x} y=${y} width=${width} height=${height} />`)}
        </svg>
      </div>
    </figure>`;
}
