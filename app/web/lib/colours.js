/** Colours code. Its text stays as it is, with all marks in it: browsers paint ranges of it (CSS Custom Highlight API). */

/** The kinds of words that have a colour, by highlight.js's scopes. */
const KINDS = {
  keyword: "keyword", built_in: "keyword", literal: "keyword", selector: "keyword", tag: "keyword", name: "keyword",
  string: "string", regexp: "string", char: "string", addition: "string",
  number: "number", attr: "number", attribute: "number", symbol: "number", variable: "number", meta: "number",
  comment: "comment", quote: "comment", doctag: "comment",
};
/** Characters of code that is coloured: more would hold up the page. */
const MOST = 20_000;

/** @type {Promise<typeof import("../vendor/highlight.js")> | undefined} */
let loading;

/** Colours an element that holds nothing but code. @param {HTMLElement} element @param {string} language
 * @returns {() => void} takes the colours away */
export function colour(element, language) {
  /** @type {[string, Range][]} */
  let painted = [];
  let gone = false;
  const code = element.textContent ?? "";
  if (language && code.length <= MOST && globalThis.CSS?.highlights) {
    (loading ??= import("../vendor/highlight.js")).then(({ default: hljs }) => {
      if (gone || !hljs.getLanguage(language)) return;
      painted = [...findRanges(element, hljs.highlight(code, { language, ignoreIllegals: true })._emitter.rootNode)];
      for (const [kind, range] of painted) layer(kind).add(range);
    }, () => { loading = undefined; });
  }
  return () => {
    gone = true;
    for (const [kind, range] of painted) layer(kind).delete(range);
  };
}

/** @param {string} kind */
function layer(kind) {
  const known = CSS.highlights.get(kind) ?? new Highlight();
  CSS.highlights.set(kind, known);
  return known;
}

/** @param {HTMLElement} element @param {import("../vendor/highlight.js").Scoped} tree @returns {Generator<[string, Range]>} */
function* findRanges(element, tree) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let [node, begun, at] = [walker.nextNode(), 0, 0];
  /** @param {number} place @returns {[Node, number]} */
  const find = (place) => {
    while (node && place > begun + (node.nodeValue?.length ?? 0)) {
      begun += node.nodeValue?.length ?? 0;
      node = walker.nextNode();
    }
    return [/** @type {Node} */ (node), place - begun];
  };
  for (const [length, kind] of listWords(tree, "")) {
    if (kind) {
      const range = new Range();
      range.setStart(...find(at));
      range.setEnd(...find(at + length));
      yield [kind, range];
    }
    at += length;
  }
}

/** The lengths of the pieces of code, in order, each with its kind. @param {import("../vendor/highlight.js").Scoped} tree @param {string} kind
 * @returns {Generator<[number, string]>} */
function* listWords(tree, kind) {
  for (const child of tree.children) {
    if (typeof child === "string") yield [child.length, kind];
    else yield* listWords(child, KINDS[child.scope?.split(/[.-]/)[0] ?? ""] ?? kind);
  }
}
