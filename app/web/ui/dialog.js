import { html, useEffect, useRef } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { visible } from "../lib/text.js";

/** A form over the page, which takes the focus and gives it back. `act` is what it does, `busy` while it does it.
 * @param {{title: any, submit: (form: FormData) => void, close: () => void, act: string, problem?: string, busy?: string, look?: string, before?: any, final?: boolean, children?: any}} props */
export function Dialog({ title, submit, close, act, problem = "", busy = "", look = "main", before, final = false, children }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  const onSubmit = (event) => {
    event.preventDefault();
    submit(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
  };
  return html`
    <dialog ref=${box} aria-labelledby="dialog-title" onClose=${close} onKeyDown=${(event) => { if (event.key === "Escape") event.stopPropagation(); }}>
      <form onSubmit=${onSubmit}><h2 id="dialog-title">${title}</h2>${children}
        ${busy && html`<p role="status">${busy}</p>`}
        <p class="wrong" role="alert">${visible(problem)}</p>
        <p class="ends">${before}${!final && html`<button type="button" onClick=${close}>${phrase("cancel")}</button>`}<button type="submit" class=${look} disabled=${Boolean(busy)}>${act}</button></p></form>
    </dialog>`;
}

/** The names in a field, between commas. @param {FormDataEntryValue | null} text */
export const readNames = (text) => String(text ?? "").split(",").map((name) => name.trim()).filter(Boolean);
