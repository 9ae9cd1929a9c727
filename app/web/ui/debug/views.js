import { html, useState } from "../../vendor/preact-htm.js";
import { address } from "../../lib/api.js";
import { short } from "../../lib/text.js";

const KEY = "askgraph.views";

/** Filters by the names that people gave them here. Whatever else stands there is none. @returns {Record<string, Record<string, string>>} */
function read() {
  try {
    return Object(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
  } catch {
    return {};
  }
}

/** Filters that are kept in this browser. Others get the page's address. @param {{filters: Record<string, string>}} props */
export function Views({ filters }) {
  const [views, setViews] = useState(read());
  const { workspace, ...kept } = filters;
  const keep = (changed) => {
    localStorage.setItem(KEY, JSON.stringify(changed));
    setViews(changed);
  };
  const save = (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    keep({ ...views, [String(new FormData(form).get("view")).trim()]: kept });
    form.reset();
  };
  const names = Object.keys(views).sort();
  if (!names.length && !Object.keys(kept).length) return null;
  return html`
    <form class="views links" onSubmit=${save} aria-label="Views">
      ${names.map((name) => html`<span key=${name}><a href=${address("/debug", views[name])}><bdi>${short(name, 40)}</bdi></a>
        <button type="button" class="quiet" aria-label="Remove the view ${name}" onClick=${() => keep(Object.fromEntries(Object.entries(views).filter(([each]) => each !== name)))}>×</button></span>`)}
      ${Object.keys(kept).length > 0 && html`<input class="search" name="view" aria-label="Name of this view" placeholder="Name of this view" required pattern=".*\\S.*" maxlength="40" autocomplete="off" /><button type="submit">Keep this view</button>`}
    </form>`;
}
