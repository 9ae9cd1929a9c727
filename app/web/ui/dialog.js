import { html, useEffect, useRef } from "../vendor/preact-htm.js";

/** A form over the page, which takes the focus and gives it back.
 * @param {{title: any, submit: (form: FormData) => void, close: () => void, children?: any}} props */
export function Dialog({ title, submit, close, children }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  const onSubmit = (event) => {
    event.preventDefault();
    submit(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
  };
  return html`
    <dialog ref=${box} aria-labelledby="dialog-title" onClose=${close} onKeyDown=${(event) => { if (event.key === "Escape") event.stopPropagation(); }}>
      <form onSubmit=${onSubmit}><h2 id="dialog-title">${title}</h2>${children}</form>
    </dialog>`;
}

/** The names in a field, between commas. @param {FormDataEntryValue | null} text */
export const readNames = (text) => String(text ?? "").split(",").map((name) => name.trim()).filter(Boolean);
