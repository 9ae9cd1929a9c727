import { html } from "../vendor/preact-htm.js";

const PATHS = {
  add: "M12 5v14M5 12h14",
  back: "M15 6l-6 6 6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  end: "M12 5v13M6 12l6 6 6-6",
  down: "M17 13V4h3v9zm0 0-4 8c-2 0-3-1-2.5-3.5L11 15H5c-1.5 0-2-1-1.7-2.3l1.6-7C5.2 4.7 6 4 7 4h10",
  library: "M5 4v16M9 4v16M13 4.5l5.5 15",
  more: "M4 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M11 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M18 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0",
  send: "M12 19V6M6 12l6-6 6 6",
  settings: "M4 8h9M17 8h3M15 6v4M4 16h3M11 16h9M9 14v4",
  stop: "M8 8h8v8H8z",
  up: "M7 11v9H4v-9zm0 0 4-8c2 0 3 1 2.5 3.5L13 9h6c1.5 0 2 1 1.7 2.3l-1.6 7c-.3 1-1 1.7-2.1 1.7H7",
  why: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 17h.01",
};

/** A drawing on a button, which has a name of its own. @param {keyof typeof PATHS} name */
export const icon = (name) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
