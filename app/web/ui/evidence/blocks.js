import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact-htm.js";
import { quotedRanges, readBlocks } from "../../lib/evidence.js";
import { phrase } from "../../lib/language.js";
import { renderPassage } from "../../lib/passages.js";
import { visible } from "../../lib/text.js";
import { NOTATION } from "../notation.js";

/** Blocks that are shown around a passage; the others on request. */
const AROUND = 30;

/** A document's text in blocks, with a citation's passage highlighted; `turn` tells which cells of a table are meant.
 * @param {{document: string, revision?: number, citation?: Citation, turn?: Turn}} props */
export function Blocks({ document, revision, citation, turn }) {
  const [blocks, setBlocks] = useState(/** @type {any[] | null} */ (null));
  const [trouble, setTrouble] = useState("");
  const [around, setAround] = useState(AROUND);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    let gone = false;
    readBlocks(document, revision).then(
      (read) => { if (!gone) setBlocks(read.blocks); },
      (error) => { if (!gone) setTrouble(error.message); },
    );
    return () => { gone = true; };
  }, [document, revision]);
  useEffect(() => {
    if (blocks && turn) markCells(/** @type {HTMLTableRowElement[]} */ ([...box.current?.querySelectorAll("tr:has(td mark)") ?? []]), turn);
    if (blocks) box.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [blocks]);
  const ranges = useMemo(() => (blocks && citation ? quotedRanges(citation, slicer(blocks)) : []), [blocks, citation]);

  if (trouble) return html`${citation && html`<blockquote class="quote" dir="auto">${visible(citation.text)}</blockquote>`}<p class="note">${visible(trouble)}</p>`;
  if (!blocks) return html`<p class="soft">${phrase("evidence.loading_text")}</p>`;
  const first = Math.max(0, blocks.findIndex(({ end }) => ranges.some(([start]) => start < end)));
  const [from, to] = [Math.max(0, first - around), first + 2 * around];
  return html`
    <div class="text" ref=${box}>
      ${from > 0 && html`<button type="button" class="quiet" onClick=${() => setAround(around + 200)}>${phrase("evidence.before")}</button>`}
      ${blocks.slice(from, to).map((block) => html`<${Block} key=${block.start} block=${block} ranges=${ranges} />`)}
      ${to < blocks.length && html`<button type="button" class="quiet" onClick=${() => setAround(around + 200)}>${phrase("show_more")}</button>`}
    </div>`;
}

/** Marks the cells that an answer is about: those that it names, or whose column the question names; where the question
 * names rows, in those. @param {HTMLTableRowElement[]} rows @param {Turn} turn */
function markCells(rows, { question, text }) {
  const prose = text.split("\n").filter((line) => !line.includes("|")).join("\n");
  const named = rows.filter(({ cells }) => names(question, cells[0]));
  for (const row of named.length ? named : rows) {
    const [header] = /** @type {HTMLTableElement} */ (row.closest("table")).rows;
    if (row !== header) [...row.cells].slice(1).forEach((cell, place) => {
      if (names(prose, cell) || names(question, header.cells[place + 1])) cell.classList.add("meant");
    });
  }
}

/** Whether a text has all of a cell in it, in whole words. @param {string} text @param {Element | undefined} cell */
function names(text, cell) {
  const wanted = cell?.textContent?.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return !!wanted && new RegExp(`(?<![\\p{L}\\p{N}]|\\d[.,])${wanted}(?![\\p{L}\\p{N}]|[.,]\\d)`, "iu").test(text.replace(/[*`]/g, ""));
}

/** Offsets count characters, of which JavaScript counts those outside the basic plane twice. @param {any[]} blocks */
function slicer(blocks) {
  const points = blocks.map(({ text }) => [...text]);
  /** @param {number} start @param {number} end */
  return (start, end) => {
    let text = "";
    let position = start;
    blocks.forEach((block, place) => {
      if (block.end <= start || block.start >= end) return;
      // Between two blocks stands only white space.
      text += "\n".repeat(Math.max(0, block.start - position));
      text += points[place].slice(Math.max(0, start - block.start), end - block.start).join("");
      position = Math.min(end, block.end);
    });
    return text;
  };
}

/** A block as its Markdown means it; in its raw text, where the quoted part could not be marked otherwise.
 * @param {{block: any, ranges: [number, number][]}} props */
function Block({ block: { kind, start, end, text }, ranges }) {
  const quoted = useMemo(() => ranges.filter(([from, to]) => from < end && to > start).map(([from, to]) => /** @type {[number, number]} */ ([Math.max(0, from - start), Math.min(to, end) - start])), [ranges]);
  const nodes = useMemo(() => renderPassage(text, quoted, NOTATION), [quoted]);
  // Markdown knows no table without a row that rules off its header; other formats have such.
  const isDrawn = nodes && (kind !== "table" || nodes.some((node) => node?.props.class === "table"));
  return html`<div class="block">${isDrawn ? nodes : html`<${kind === "table" ? Table : Raw} text=${text} ranges=${quoted} />`}</div>`;
}

/** @param {{text: string, ranges: [number, number][]}} props */
function Raw({ text, ranges }) {
  const points = [...text];
  const parts = [];
  let position = 0;
  for (const [begin, end] of ranges) {
    parts.push(visible(points.slice(position, begin).join("")), html`<mark>${visible(points.slice(begin, end).join(""))}</mark>`);
    position = end;
  }
  parts.push(visible(points.slice(position).join("")));
  return html`<p class="plain" dir="auto">${parts}</p>`;
}

/** @param {{text: string, ranges: [number, number][]}} props */
function Table({ text, ranges }) {
  let position = 0;
  const rows = text.split("\n").map((line) => {
    const begin = position;
    position += [...line].length + 1;
    if (/^[\s|:-]*$/.test(line)) return null;
    const quoted = ranges.some(([from, to]) => from < position && to > begin);
    const cells = line.replace(/^ *\| *| *(?<!\\)\| *$/g, "").split(/ *(?<!\\)\| */).map(visible);
    return html`<tr>${cells.map((cell) => html`<td dir="auto">${quoted ? html`<mark>${cell}</mark>` : cell}</td>`)}</tr>`;
  });
  return html`<div class="table" tabindex="0"><table>${rows}</table></div>`;
}
