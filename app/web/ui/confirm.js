import { html, useState } from "../vendor/preact-htm.js";

/** A button that asks once more before it does what cannot be undone.
 * @param {{label: string, of: string, act: () => void}} props */
export function Confirm({ label, of, act }) {
  const [asked, setAsked] = useState(false);
  return html`
    <button type="button" class="quiet ${asked ? "wrong" : ""}" aria-label="${asked ? `Really ${label.toLowerCase()}` : label} ${of}"
      onBlur=${() => setAsked(false)} onClick=${() => (asked ? act() : setAsked(true))}>${asked ? `${label}?` : label}</button>`;
}
