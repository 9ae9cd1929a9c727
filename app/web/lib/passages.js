/** A document's text as its Markdown means it, with the quoted parts of it marked. Its offsets are those of the raw text. */

import { h } from "../vendor/preact-htm.js";
import { language } from "./language.js";
import { renderMarkdown } from "./markdown.js";
import { visible } from "./text.js";

/** What Markdown writes between two pieces of text: the mark of an item, a fence with its language, or any one sign. */
const SIGN = /(?<![^\n])[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|(?:`{3,}|~{3,})[^\n]*)|[^\p{L}\p{N}]/uy;

/** A block of a document as virtual nodes, with `ranges`, [start, end) in characters of the block, marked. Null where it
 * cannot be told which part of what is shown they are. `make` shows code and formulas.
 * @param {string} source @param {[number, number][]} ranges @param {Pick<import("./markdown.js").Make, "code" | "formula">} make */
export function renderPassage(source, ranges, make) {
  const points = [...source];
  return mark(source, ranges.map((range) => range.map((place) => points.slice(0, place).join("").length)), make, (part) => h("mark", null, part));
}

/** A text with what another one does not say struck out, or marked; as it is where that cannot be told.
 * @param {string} source @param {string} other @param {Pick<import("./markdown.js").Make, "code" | "formula">} make @param {(part: string) => any} [wrap] */
export function renderReplaced(source, other, make, wrap = (part) => h("del", null, part)) {
  const kept = new Set(split(other).map(({ bare }) => bare));
  const gone = split(source).filter(({ bare }) => bare && !kept.has(bare)).map(({ start, end }) => [start, end]);
  return mark(source, gone, make, wrap) ?? renderMarkdown(source, { ...make, text: visible });
}

const sentences = new Intl.Segmenter(language, { granularity: "sentence" });

/** The sentences of a text, or what of them stands on a line, without white space and markers. @param {string} text */
const split = (text) => [...sentences.segment(text)].flatMap(({ segment, index }) => [...segment.matchAll(/[^\n]+/g)].map((line) => {
  const start = index + line.index;
  return { start, end: start + line[0].trimEnd().length, bare: line[0].replace(/\[[^\]\n]{1,80}\]|[\s|*_#>]/g, "") };
}));

/** @param {string} source @param {number[][]} units @param {Pick<import("./markdown.js").Make, "code" | "formula">} make @param {(part: string) => any} wrap */
function mark(source, units, make, wrap) {
  let [at, lost] = [0, false];
  /** @param {string} line */
  const show = (line) => {
    const start = find(source, line, at);
    if (start < 0) {
      lost = true;
      return visible(line);
    }
    at = start + line.length;
    return splitAt(units, start, at).map(([from, to, isQuoted]) => {
      const part = visible(source.slice(from, to));
      return isQuoted ? wrap(part) : part;
    });
  };
  // Lines of code in a list stand further to the right in the raw text.
  const all = (text) => text.split("\n").flatMap((line, number) => [number ? "\n" : "", show(line)]);
  const nodes = renderMarkdown(source, { ...make, text: all, verbatim: all });
  return units.length && lost ? null : nodes;
}

/** Where the next piece of text stands, behind nothing but signs; -1: nowhere.
 * @param {string} source @param {string} line @param {number} from */
function find(source, line, from) {
  for (let at = from; at + line.length <= source.length; ) {
    SIGN.lastIndex = at;
    const sign = SIGN.exec(source)?.[0] ?? "";
    // A number that is text may be that of the item, too.
    const isText = source.startsWith(line, at) && (sign.length < 2 || line.startsWith(sign));
    if (isText) return at;
    if (!sign) return -1;
    at += sign.length;
  }
  return -1;
}

/** The parts of [start, end), each with whether it is quoted.
 * @param {number[][]} ranges @param {number} start @param {number} end @returns {[number, number, boolean][]} */
function splitAt(ranges, start, end) {
  const cuts = [...new Set([start, end, ...ranges.flat().filter((cut) => start < cut && cut < end)])].sort((one, other) => one - other);
  return cuts.slice(1).map((to, place) => [cuts[place], to, ranges.some(([from, until]) => from <= cuts[place] && to <= until)]);
}
