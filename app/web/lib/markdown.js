/** Answers and documents are Markdown. The lexer of marked reads it, and what it finds becomes virtual nodes: no HTML ever exists. */

import { h } from "../vendor/preact-htm.js";
import { Marked } from "../vendor/marked.js";
import { visible } from "./text.js";

const MARKER = /^\[(?:(?:Source |Citation )?(\d{1,3})|cite:([^\s\]]+))\]/;
const MOST_LEVELS = 12;

const marker = {
  name: "marker",
  level: /** @type {const} */ ("inline"),
  start: (text) => text.indexOf("["),
  tokenizer(text) {
    const found = MARKER.exec(text);
    return found ? { type: "marker", raw: found[0], number: Number(found[1] ?? 0), chunk: found[2] } : undefined;
  },
};

/** LaTeX between `$`, `$$`, `\\( \\)` or `\\[ \\]`. A dollar before white space opens nothing, and one before a digit or a
 * letter closes nothing: those are prices. */
const FORMULA = /^(?:\$\$((?:\\[^]|[^\\$]){1,2000})\$\$|\\\[([^]{1,2000}?)\\\]|\\\(([^]{1,2000}?)\\\)|\$(?!\s)((?:\\.|[^\\$\n]){1,500})(?<!\s)\$(?![\p{L}\d]))/u;
/** Signs of LaTeX, as opposed to text with brackets that somebody has escaped. */
const SIGNS = /\\\p{L}|(?<!\\)(?:[\^={}<>]|_[{\d])/u;
/** What is one without: it has no words, and begins with no figure. */
const SHORT = /^\s*\D(?!.*\p{L}{3})/u;

/** @param {"inline" | "block"} level @param {RegExp} opening */
const formula = (level, opening) => ({
  name: `${level}Formula`,
  level,
  start: (text) => text.search(opening),
  tokenizer(text) {
    const found = FORMULA.exec(text);
    if (!found || (level === "block" && !/^[ \t]*(\n|$)/.test(text.slice(found[0].length)))) return undefined;
    const tex = found.slice(1).find(Boolean) ?? "";
    const display = /^(\$\$|\\\[)/.test(text);
    const isFormula = SIGNS.test(tex) || (!text.startsWith("\\[") && SHORT.test(tex));
    return isFormula && (display || level === "inline") ? { type: "formula", raw: found[0], tex, display } : undefined;
  },
});

const formulas = [formula("inline", /\$|\\[([]/), formula("block", /\n(\$\$|\\\[)/)];
const ofAnswers = new Marked({ breaks: true, extensions: [marker, ...formulas] });
const ofDocuments = new Marked({ breaks: true, extensions: formulas });

/** @typedef {{
 *   marker?: (number: number, chunk: string | undefined, nth: number) => any, text: (text: string) => any,
 *   verbatim?: (text: string) => any, code: (text: string, language: string, shown: any) => any,
 *   formula: (tex: string, display: boolean, shown: any) => any,
 * }} Make */

/** The text as virtual nodes. `make` gives the node of a marker, the `nth` of its source from 0, or null
 * where there is no such source, and what to show of plain text, of what is no prose, of code and of formulas, in the order
 * of the text. Without `marker` it is a document's text, which has none.
 * @param {string} text @param {Make} make */
export function renderMarkdown(text, make) {
  try {
    const tokens = (make.marker ? ofAnswers : ofDocuments).lexer(text);
    nameHeadings(tokens);
    countMarkers(tokens, new Map());
    return renderBlocks(tokens, make, 0);
  } catch (error) {
    // Ten thousand quotes within each other are too deep for any reader.
    if (!(error instanceof RangeError)) throw error;
    return [h("p", { class: "plain" }, asIs(text, make))];
  }
}

/** @param {string} text @param {Make} make */
const asIs = (text, { verbatim = visible }) => verbatim(text);

/** Gives headings tags that follow the question's, whatever levels a document began with. @param {any[]} tokens */
function nameHeadings(tokens) {
  const headings = tokens.filter(({ type }) => type === "heading");
  const depths = [...new Set(headings.map(({ depth }) => depth))].sort();
  for (const heading of headings) heading.tag = `h${Math.min(6, 3 + depths.indexOf(heading.depth))}`;
}

/** Numbers the markers of each source in their order. @param {any[]} tokens @param {Map<any, number>} seen */
function countMarkers(tokens, seen) {
  for (const token of tokens) {
    const of = token.chunk ?? token.number;
    if (token.type === "marker") seen.set(of, 1 + (token.nth = seen.get(of) ?? 0));
    const { tokens = [], items = [], header, rows = [] } = token;
    // A cell says in `header` whether it is one.
    for (const inner of [tokens, items, ...(rows.length ? [header] : []), ...rows]) countMarkers(inner, seen);
  }
}

/** @param {any[]} tokens @param {Make} make @param {number} level @returns {any[]} */
function renderBlocks(tokens, make, level) {
  if (level > MOST_LEVELS) return tokens.map((token) => asIs(token.raw, make));
  return tokens.map((token) => renderBlock(token, make, level + 1));
}

/** @param {any} token @param {Make} make @param {number} level @returns {any} */
function renderBlock(token, make, level) {
  const inline = () => renderInline(token.tokens ?? [], make, level);
  switch (token.type) {
    case "space": return null;
    case "heading": return h(token.tag ?? "h6", { dir: "auto", "data-depth": token.depth }, inline());
    case "paragraph": return h("p", { dir: token.item ? undefined : "auto" }, inline());
    case "text": return token.tokens ? inline() : asIs(token.text, make);
    case "blockquote": return h("blockquote", null, renderBlocks(token.tokens, make, level));
    case "code": return make.code(token.text, /^\S*/.exec(token.lang ?? "")?.[0].toLowerCase() ?? "", asIs(token.text, make));
    case "formula": return h("p", null, make.formula(token.tex, token.display, asIs(token.raw, make)));
    case "hr": return h("hr", null);
    case "list": {
      // A list has one direction, which its words decide, also those in paragraphs of its items.
      const items = token.items.map((item) => h("li", null, renderBlocks(item.tokens.map((each) => ({ ...each, item })), make, level)));
      return token.ordered ? h("ol", { dir: "auto", start: token.start || 1 }, items) : h("ul", { dir: "auto" }, items);
    }
    case "table": return renderTable(token, make, level);
    // Markup, and addresses that Markdown would hide.
    default: return h("p", { dir: "auto" }, asIs(token.raw, make));
  }
}

/** @param {any} token @param {Make} make @param {number} level */
function renderTable(token, make, level) {
  /** @param {any[]} cells @param {string} tag */
  const row = (cells, tag) =>
    h("tr", null, cells.map((cell, column) =>
      // The head has the direction of its table, which its words decide.
      h(tag, { dir: tag === "td" ? "auto" : undefined, "data-align": cell.align ?? undefined }, renderInline(withoutRepeats(cells, column), make, level))));
  return h("div", { class: "table", dir: "auto", tabIndex: 0, role: "group", "aria-label": "Table" },
    h("table", null,
      h("thead", null, row(token.header, "th")),
      h("tbody", null, token.rows.map((cells) => row(cells, "td")))));
}

/** A cell's tokens without the markers that a later cell of the row has too: one a row is enough.
 * @param {any[]} cells @param {number} column */
function withoutRepeats(cells, column) {
  const later = new Set(cells.slice(column + 1).flatMap((cell) => cell.tokens).map((token) => token.type === "marker" && token.raw));
  return cells[column].tokens.filter((token) => token.type !== "marker" || !later.has(token.raw));
}

/** @param {any[]} tokens @param {Make} make @param {number} level @returns {any[]} */
function renderInline(tokens, make, level) {
  if (level > MOST_LEVELS) return tokens.map((token) => asIs(token.raw, make));
  return tokens.map((token) => {
    const inner = () => renderInline(token.tokens ?? [], make, level + 1);
    switch (token.type) {
      case "marker": return make.marker?.(token.number, token.chunk, token.nth) ?? asIs(token.raw, make);
      case "formula": return make.formula(token.tex, token.display, asIs(token.raw, make));
      case "text": return token.tokens ? inner() : make.text(token.text);
      case "escape": return asIs(token.text, make);
      case "strong": return h("strong", null, inner());
      case "em": return h("em", null, inner());
      case "del": return h("s", null, inner());
      case "codespan": return h("code", null, asIs(token.text, make));
      case "br": return h("br", null);
      // A link shows where it leads, and leads nowhere: its text and its address are a document's or a model's.
      case "link":
        if ([token.raw, token.text, `mailto:${token.text}`].includes(token.href)) return asIs(token.text, make);
        return [...inner(), h("span", { class: "address" }, " (", asIs(token.href, make), ")")];
      case "image": return [asIs(token.text, make), " (", asIs(token.href, make), ")"];
      default: return asIs(token.raw, make);
    }
  });
}
