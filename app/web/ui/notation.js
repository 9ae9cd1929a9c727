import { html, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { colour } from "../lib/colours.js";
import { phrase } from "../lib/language.js";
import { visible } from "../lib/text.js";

/** Limits against formulas that are meant to hold up the page, or to cover it. */
const OPTIONS = { throwOnError: true, maxExpand: 100, maxSize: [20, 20] };

/** @type {Promise<typeof import("../vendor/temml.js")> | undefined} */
let loading;

/** Shows code and formulas of answers and documents. @type {Pick<import("../lib/markdown.js").Make, "code" | "formula">} */
export const NOTATION = {
  code: (text, language, shown) => html`<${Code} text=${text} language=${language}>${shown}<//>`,
  formula: (tex, display, shown) => html`<${Formula} tex=${visible(tex)} display=${display}>${shown}<//>`,
};

/** Code with a button that copies it. @param {{text: string, language: string, children?: any}} props */
function Code({ text, language, children }) {
  const [copied, setCopied] = useState(false);
  const code = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => colour(/** @type {HTMLElement} */ (code.current), language), [text, language]);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
  return html`
    <div class="code-block"><pre tabindex="0"><code ref=${code}>${children}</code></pre>
      ${navigator.clipboard && html`<button type="button" onClick=${copy}>${phrase(copied ? "actions.copied" : "actions.copy_code")}</button>`}</div>`;
}

/** Puts MathML into an element. Rejects where the LaTeX cannot be read. @param {string} tex @param {boolean} display @param {Element} box */
export async function drawFormula(tex, display, box) {
  const { default: temml } = await (loading ??= import("../vendor/temml.js"));
  const drawing = document.createElement("span");
  temml.render(tex, drawing, { ...OPTIONS, displayMode: display });
  box.replaceChildren(...drawing.childNodes);
}

/** LaTeX as MathML; as it stands, in `children`, where it cannot be read.
 * @param {{tex: string, display: boolean, children?: any}} props */
function Formula({ tex, display, children }) {
  const [drawn, setDrawn] = useState("");
  const [wide, setWide] = useState(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    drawFormula(tex, display, /** @type {HTMLElement} */ (box.current)).then(() => setDrawn(tex), () => {});
  }, [tex, display]);
  useLayoutEffect(() => {
    // Browsers break no formula. One that is wider than the text around it stands alone, and scrolls.
    const around = box.current?.closest(".answer, .block, .claims li");
    setWide(!!box.current && !!around && box.current.offsetWidth > around.clientWidth);
  }, [drawn]);
  const alone = display || wide;
  const tag = [children].flat(3).find((part) => ["mark", "del", "ins"].includes(part?.type))?.type ?? "span";
  return html`
    <span class="formula ${alone ? "display" : ""}" tabindex=${alone ? 0 : undefined}><${tag} ref=${box} hidden=${drawn !== tex} /><span hidden=${drawn === tex}>${children}</span></span>`;
}
