/** Starts the page of settings and people. */

import { html, render } from "./vendor/preact-htm.js";
import { language, phrase } from "./lib/language.js";
import { Settings } from "./ui/settings/app.js";

document.documentElement.lang = language;
document.title = `${phrase("settings.title")} – askgraph`;
const root = /** @type {Element} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${Settings} />`, root);
