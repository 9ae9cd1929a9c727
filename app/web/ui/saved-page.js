/** Conversations as pages of their own. Loaded when somebody saves one. */

import { html, render } from "../vendor/preact-htm.js";
import { listCaveats, listCited, nameCited, nameScope } from "../lib/export.js";
import { language } from "../lib/language.js";
import { renderMarkdown } from "../lib/markdown.js";
import { visible } from "../lib/text.js";
import { drawFormula } from "./notation.js";

/** Of a saved page: no script runs in it, and it fetches nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE = `
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; } pre, .table { overflow-x: auto; } .plain { white-space: pre-wrap; }
table { border-collapse: collapse; } th, td { border: 1px solid; padding: .2rem .6rem; text-align: start; }
blockquote { margin: .3rem 0; padding-left: .9rem; border-left: 3px solid; } .sources { font-size: .85rem; padding: 0; list-style: none; }
`;

/** A whole conversation as a page that needs nothing else. @param {string} title @param {Turn[]} turns */
export async function writePage(title, turns) {
  const page = document.implementation.createHTMLDocument(visible(title));
  page.documentElement.lang = language;
  /** @type {Promise<void>[]} */
  const drawing = [];
  const make = {
    text: visible,
    code: (_, __, shown) => html`<pre><code>${shown}</code></pre>`,
    formula: (tex, display, shown) => html`<span ref=${(box) => { if (box) drawing.push(drawFormula(visible(tex), display, box).catch(() => {})); }}>${shown}</span>`,
  };
  const say = (text) => text && html`<p dir="auto"><small>${visible(text)}</small></p>`;
  const head = html`<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" /><meta http-equiv="Content-Security-Policy" content=${POLICY} /><title>${visible(title)}</title>`;
  render(head, page.head);
  render(html`<h1>${visible(title)}</h1>${turns.map((turn, number) => {
    const cited = listCited(turn);
    const marker = (each, chunk) => {
      const found = cited.find((citation) => (chunk ? citation.chunk_id === chunk : citation.marker === each));
      return found ? html`<a href="#s${number}-${found.marker}">[${found.marker}]</a>` : null;
    };
    return html`
      <h2 dir="auto">${visible(turn.question)}</h2>${[nameScope(turn)].map(say)}${renderMarkdown(turn.text, { ...make, marker })}${listCaveats(turn).map(say)}
      <ul class="sources">${cited.map((citation) => html`<li id="s${number}-${citation.marker}">[${citation.marker}] <bdi>${visible(nameCited(citation))}</bdi><blockquote>${renderMarkdown(citation.text, make)}</blockquote></li>`)}</ul>`;
  })}`, page.body);
  await Promise.all(drawing);
  // This page's policy refuses a style sheet that it did not fetch, even of another document.
  return `<!doctype html>\n${new XMLSerializer().serializeToString(page).replace("</head>", `<style>${STYLE}</style></head>`)}\n`;
}
