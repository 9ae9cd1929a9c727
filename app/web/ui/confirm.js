import { html, useState } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";

/** A button that deletes, and asks once more before it does.
 * @param {{of: string, act: () => void}} props */
export function Confirm({ of, act }) {
  const [asked, setAsked] = useState(false);
  return html`
    <button type="button" class="quiet ${asked ? "wrong" : ""}" aria-label="${phrase(asked ? "confirm.really" : "delete")} ${of}"
      onBlur=${() => setAsked(false)} onClick=${() => (asked ? act() : setAsked(true))}>${phrase("delete")}${asked ? "?" : ""}</button>`;
}
