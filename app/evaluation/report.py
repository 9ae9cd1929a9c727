"""Reports an evaluation: its metrics, and a report as JSON and as an HTML page."""

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from app.evaluation.asking import Outcome
from app.evaluation.comparison import Comparison, compare
from app.evaluation.evaluation import Evaluated, Result
from app.evaluation.scoring import explain, is_right, pair_up
from app.evaluation.sets import Question
from domain.errors import InputError

NAME = "report"

_FILTER = """<fieldset>
  <legend>Questions</legend>
  <label class="check"><input type="radio" name="show" id="show-all" checked> all</label>
  <label class="check"><input type="radio" name="show" id="show-wrong"> those that went wrong</label>
  <label class="check"><input type="radio" name="show" id="show-flipped"> those that differ between profiles</label>
</fieldset>"""


def list_metrics(evaluated: Sequence[Evaluated]) -> dict[str, dict[str, Any]]:
    """Return the metrics by set or, if there are several profiles, by set and profile."""
    return {
        each.set.name: each.results[0].metrics
        if len(each.results) == 1
        else {result.profile: result.metrics for result in each.results}
        for each in evaluated
    }


def check_folder(folder: Path) -> None:
    """Create the folder and try to write into it, so that an evaluation does not fail at its end.

    Raises `InputError` if that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"Reports cannot be written to {folder}: {error.strerror}. Name a folder: --out.") from error


def write_report(evaluated: Sequence[Evaluated], folder: Path, fingerprint: str) -> Path:
    """Write `report.json` and `report.html`, replacing earlier ones, and return the path of the page. `fingerprint`
    identifies code and models."""
    folder.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": fingerprint,
        "sets": [_describe(each) for each in evaluated],
    }
    (folder / f"{NAME}.json").write_text(json.dumps(report, ensure_ascii=False, indent=1), "utf-8")
    page = folder / f"{NAME}.html"
    drawn = draw_page("Evaluation", f"<p>{escape(report['created'])}</p>", _FILTER, *map(_draw, evaluated))
    page.write_text(drawn, "utf-8")
    return page


def _describe(each: Evaluated) -> dict[str, Any]:
    return {
        "name": each.set.name,
        "fingerprint": each.set.fingerprint,
        "profiles": [
            {
                "profile": result.profile,
                "metrics": result.metrics,
                "questions": [
                    question.model_dump(exclude_defaults=True)
                    | {
                        "right": is_right(each.set, question, outcome),
                        "why": explain(each.set, question, outcome),
                        "outcome": outcome.model_dump(),
                    }
                    for question, outcome in pair_up(each.set, result.outcomes)
                ],
            }
            for result in each.results
        ],
        "comparisons": [asdict(comparison) for comparison in compare(each)],
    }


def _draw(each: Evaluated) -> str:
    comparisons = compare(each)
    flipped = {id for comparison in comparisons for id in (*comparison.gained, *comparison.lost)}
    rows = [
        _draw_question(each, result, question, outcome, question.id in flipped)
        for question in each.set.questions
        for result in each.results
        if (outcome := result.outcomes.get(question.id)) is not None
    ]
    return "\n".join(
        [
            f"<section><h2>{escape(each.set.name)}</h2>",
            _draw_metrics(each, comparisons),
            draw_table(
                ("verdict", "question", "expected, and its rank", "answer", "confidence", "route", "ms"),
                rows,
                "questions",
            ),
            "</section>",
        ]
    )


def _draw_metrics(each: Evaluated, comparisons: Sequence[Comparison]) -> str:
    names = dict.fromkeys(name for result in each.results for name in result.metrics)
    rows = [
        [name]
        + [_show(result.metrics.get(name)) for result in each.results]
        + [_show(comparison.differences.get(name), sign="+") for comparison in comparisons]
        for name in names
    ]
    drawn = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    heads = ["metric", *(result.profile for result in each.results), *(f"{c.after} − {c.before}" for c in comparisons)]
    return draw_table(heads, drawn, "figures")


def _draw_question(each: Evaluated, result: Result, question: Question, outcome: Outcome, flipped: bool) -> str:
    why = explain(each.set, question, outcome)
    before = "".join(f"<p>{escape(earlier)}</p>" for earlier in question.before)
    about = " · ".join(filter(None, (question.id, question.type, result.profile)))
    asked = [
        f"<b>{escape(question.question)}</b>",
        f"<small>{escape(about)}</small>",
        f"<details><summary>asked before</summary>{before}</details>" if before else "",
        f"<small>searched: {escape(' | '.join(outcome.queries))}</small>" if outcome.queries else "",
    ]
    wanted = [f"{escape(doc)} ({_find_rank(doc, outcome)})" for doc in question.grades]
    if question.answerable is False:
        wanted.append("<i>should not be answered</i>")
    wanted += [f"“{escape('” or “'.join(fact))}”" for fact in question.must]
    if question.answers:
        wanted.append(f"“{escape('” or “'.join(question.answers))}”")
    said = [f"<b>{escape(outcome.error)}</b>" if outcome.error else escape(outcome.answer)]
    said += [f"<small>[{escape(c.doc)}] {escape(c.text)}</small>" for c in outcome.citations]
    said += [f"<small>{escape(warning)}</small>" for warning in outcome.warnings]
    timings = ", ".join(f"{node} {ms:.0f}" for node, ms in outcome.timings.items() if node != "total")
    cells = (
        f"wrong<br><small>{escape(why)}</small>" if why else "right",
        "<br>".join(filter(None, asked)),
        "<br>".join(wanted),
        "<br>".join(said),
        f"{outcome.confidence:.2f}",
        f"{escape(outcome.route)}{f', {outcome.retries} retried' if outcome.retries else ''}",
        f"<span title='{escape(timings)}'>{outcome.timings.get('total', 0):.0f}</span>",
    )
    kinds = " ".join(filter(None, ("wrong" if why else "right", "flipped" if flipped else "")))
    return f"<tr class='{kinds}'>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _find_rank(doc: str, outcome: Outcome) -> str:
    return f"rank {outcome.ranking.index(doc) + 1}" if doc in outcome.ranking else "not found"


def _show(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"{value:{sign}.4g}"


def draw_page(title: str, *parts: str) -> str:
    """Return the page with this title, escaped, and parts that are HTML."""
    template = Template((resources.files("app.evaluation") / "report_page.html").read_text("utf-8"))
    return template.substitute(title=escape(title), body="\n".join(parts))


def draw_table(heads: Iterable[str], rows: Sequence[str], kind: str) -> str:
    """Return a table of the class `kind` with these headings, escaped, and rows that are HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "\n".join(rows)
    return f"<table class='{kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
