import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { phrase } from "../lib/language.js";
import { addFiles } from "../lib/library.js";

/** Takes files that are chosen, or dropped anywhere on the page. */
export function DropZone() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const drag = (event) => {
      if (!bringsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event) => { if (!event.relatedTarget) setOver(false); };
    const drop = (event) => {
      setOver(false);
      if (!bringsFiles(event)) return;
      event.preventDefault();
      addFiles([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", drag);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
  }, []);
  const add = ({ currentTarget: input }) => {
    addFiles([...(input.files ?? [])]);
    input.value = "";
  };
  return html`<input id="files" type="file" multiple hidden onChange=${add} />${over && html`<div class="drop">${phrase("app.drop")}</div>`}`;
}

/** Asks for files to add. */
export const pickFiles = () => document.getElementById("files")?.click();

/** @param {DragEvent} event */
const bringsFiles = (event) => event.dataTransfer?.types.includes("Files");
