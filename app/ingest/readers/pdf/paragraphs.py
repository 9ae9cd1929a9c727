"""Paragraphs: where they end, and which line breaks are only the right margin's."""

import re
from collections.abc import Sequence

from app.ingest.readers.pdf.characters import View
from app.ingest.readers.pdf.headings import reads_like_heading
from app.ingest.readers.pdf.page import PageLine, Run

_ITEM = re.compile(r"[•▪◦‣●○■□☐☑☒–—-] |\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)] ")
"""The beginning of a list item."""


def lay_out(runs: Sequence[Run], view: View) -> list[PageLine]:
    """Turn runs into lines, each with the separator from the line before."""
    lines: list[PageLine] = []
    block: list[Run] = []
    for run in runs:
        if block and not _is_same_block(block[-1], run):
            lines += _break_lines(block, view)
            block = []
        block.append(run)
    return lines + _break_lines(block, view)


def _is_same_block(before: Run, run: Run) -> bool:
    """Return True if a line belongs to the block of the line before.

    It does if it stands close below. It may stand farther below in a table with much space between its rows, or in the
    middle of a sentence of double-spaced text.
    """
    gap = (run.top - before.bottom) / max(run.height, 1)
    if run.columns and run.columns is before.columns:
        return True
    if not 0.6 <= gap < 1.5:
        return -0.8 < gap < 0.6
    if before.tabular or run.tabular:
        return before.tabular and run.tabular
    alike = before.bold == run.bold and abs(before.height - run.height) <= 0.1 * run.height
    aligned = abs(before.left - run.left) < run.height
    return alike and aligned and before.text[-1] not in ".!?:" and _ITEM.match(run.text) is None


def _break_lines(block: Sequence[Run], view: View) -> list[PageLine]:
    margin = max((run.right for run in block), default=0.0)
    lines: list[PageLine] = []
    for before, run in zip([None, *block], block, strict=False):
        if before is None:
            gap = "\n\n"
        elif re.search(r"\w-$", before.text) and re.match(r"\w", run.text):
            gap = ""
        else:
            gap = " " if _continues_sentence(before, run, margin) else "\n"
        lines.append(PageLine(run.text, run.height, run.bold, gap, view.measure(run), run.columns))
    return lines


def _continues_sentence(before: Run, run: Run, margin: float) -> bool:
    """Return True if the line before was full, so that the next word did not fit on it."""
    if any(each.tabular or each.is_entered for each in (before, run)) or _ITEM.match(run.text):
        return False
    if abs(before.height - run.height) > 0.1 * run.height:
        return False
    if before.bold and not run.bold and reads_like_heading(before.text):
        return False
    first_word = len(run.text.split(maxsplit=1)[0]) + 1
    return before.right + first_word * (run.right - run.left) / len(run.text) > margin
