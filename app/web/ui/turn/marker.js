import { html } from "../../vendor/preact-htm.js";
import { openCitation, prefetchPage } from "../../lib/evidence.js";
import { phrase } from "../../lib/language.js";
import { setState } from "../../lib/store.js";
import { short } from "../../lib/text.js";

/** The number in an answer that leads to its source.
 * @param {{turn: string, citation: Citation, nth?: number}} props */
export function Marker({ turn, citation, nth }) {
  const { marker, title, page, text, outside } = citation;
  const where = page ? `, ${phrase("page", { page })}` : outside ? `, ${phrase("evidence.outside")}` : "";
  const show = (event) => {
    prefetchPage(citation);
    const anchor = /** @type {Element} */ (event.currentTarget);
    setState({ tip: { anchor, title: `${short(title)}${where}`, text: short(text, 500) } });
  };
  const hide = () => setState({ tip: null });
  return html`
    <button type="button" class="marker" data-marker=${marker} data-nth=${nth} aria-label=${phrase("evidence.source_of", { marker, title: short(title) + (outside ? where : "") })}
      aria-describedby="tip" onClick=${() => openCitation(turn, marker, nth)}
      onMouseEnter=${show} onFocus=${show} onMouseLeave=${hide} onBlur=${hide}><span>${marker}</span></button>`;
}
