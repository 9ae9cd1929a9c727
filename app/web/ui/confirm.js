import { html, useState } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";

/** A button for what cannot be undone, deleting unless it says otherwise, which asks once more before it does it.
 * @param {{of: string, act: () => void, label?: string, really?: string}} props */
export function Confirm({ of, act, label = phrase("delete"), really = phrase("confirm.really") }) {
  const [asked, setAsked] = useState(false);
  const ask = (event) => {
    if (asked) return act();
    // The menu that it stands in stays open.
    event.preventDefault();
    setAsked(true);
  };
  return html`
    <button type="button" class="quiet ${asked ? "wrong" : ""}" aria-label="${asked ? really : label} ${of}"
      onBlur=${() => setAsked(false)} onClick=${ask}>${label}${asked ? "?" : ""}</button>`;
}
