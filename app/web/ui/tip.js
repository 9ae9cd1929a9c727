import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact-htm.js";
import { useStore } from "../lib/store.js";
import { short, visible } from "../lib/text.js";

/** What a marker stands for, beside it, while it is pointed at or has the focus. */
export function Tip() {
  const tip = useStore((state) => state.tip);
  // The answer grows under it.
  useStore((state) => tip && state.thread);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const place = () => {
    const { current } = box;
    if (!tip || !current) return;
    const at = tip.anchor.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - current.offsetWidth - 12);
    current.style.left = `${Math.max(12, left)}px`;
    current.style.top = at.top > current.offsetHeight + 12 ? `${at.top - current.offsetHeight - 6}px` : `${at.bottom + 6}px`;
  };
  useLayoutEffect(place);
  useEffect(() => {
    addEventListener("scroll", place, { passive: true, capture: true });
    return () => removeEventListener("scroll", place, { capture: true });
  }, [tip]);
  return tip && html`<div id="tip" role="tooltip" ref=${box}><b><bdi>${short(tip.title)}</bdi></b><span dir="auto">${visible(tip.text)}</span></div>`;
}
