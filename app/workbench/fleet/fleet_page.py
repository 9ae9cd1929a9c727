"""Draws the report of a replay of many runs as one HTML page, which needs nothing else and runs no script."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Literal

from app.support.report_page import draw_page, draw_row, draw_table
from app.workbench.compare.endings import CitedPlace, Ending
from app.workbench.compare.word_difference import Part, compare_words
from app.workbench.fleet.fleet_report import FleetReport, FleetRow, list_most_different


def draw_report(report: FleetReport) -> str:
    """Return the page."""
    plan, created = report["plan"], datetime.now(UTC).isoformat(timespec="seconds")
    return draw_page(
        f"Replay of {plan['affected']:,} of {plan['runs']:,} runs with {report['change']}",
        f"<p>{created}. {_summarize(report)}</p>",
        _draw_tables(report),
        "<h2>Most different</h2>",
        *(list(map(_draw_pair, list_most_different(report))) or ["<p>Nothing changed.</p>"]),
        f"<details><summary>All runs that were replayed</summary>{_draw_all(report['runs'])}</details>",
    )


def _summarize(report: FleetReport) -> str:
    return (
        f"{report['changed']:,} of {report['tried']:,} runs changed ({report['share_changed']:.1%}). Of the changed "
        f"answers {report['better']:,} are better and {report['worse']:,} worse, by {escape(report['judge'])}. "
        f"Spent: ${report['spent']:.4f}. {report['resumed']:,} results are from the journal of an interrupted replay."
    )


def _draw_tables(report: FleetReport) -> str:
    plan = report["plan"]
    figures = {
        **{f"changed: {aspect}": number for aspect, number in report["flipped"].items()},
        "changed: route": report["routes_changed"],
        **{f"outcome: {change}": number for change, number in report["outcomes"].items()},
        "citations gained": report["citations_gained"],
        "citations lost": report["citations_lost"],
        "better": report["better"],
        "worse": report["worse"],
    }
    left_out = {
        "not affected by the change": plan["unaffected"],
        **plan["skipped"],
        **{f"not tried: {reason}": number for reason, number in report["not_tried"].items()},
    }
    begins = {f"from {name}": number for name, number in plan["begins"].items()}
    nodes = [
        draw_row([node, *(f"{ms:,.1f}" for ms in change["ms"]), *map(_show_cost, change["cost"])])
        for node, change in report["by_node"].items()
    ]
    return "\n".join(
        [
            _draw_figures(("what changed", "number"), figures),
            _draw_figures(("first step that ran again", "runs"), begins),
            _draw_figures(("left out", "runs"), left_out),
            draw_table(("step", "ms then", "ms now", "cost then", "cost now"), nodes, "figures"),
        ]
    )


def _draw_figures(heads: Sequence[str], figures: Mapping[str, int]) -> str:
    return draw_table(heads, [draw_row([name, f"{number:,}"]) for name, number in figures.items() if number], "figures")


def _draw_pair(row: Mapping[str, Any]) -> str:
    """Draw both endings of a run side by side."""
    then, now, compared = row["recorded"], row["ending"], row["compared"]
    rows = [
        [name, show(then), show(now)]
        for name, show in (
            ("outcome", _show_outcome),
            ("route", lambda ending: f"{ending['route']}: {' → '.join(ending['path'])}"),
            ("verification", lambda ending: str(ending["verdict"])),
        )
    ]
    rows.append(["only here", _list_places(compared["lost"]), _list_places(compared["gained"])])
    parts = compare_words(then["answer"], now["answer"])
    answers = "".join(f"<td>{_mark(parts, changed)}</td>" for changed in ("removed", "added"))
    drawn = [*map(draw_row, rows), f"<tr><td>answer</td>{answers}</tr>"]
    table = draw_table(("", "then", "now"), drawn, "pair")
    return f"<h3>{escape(row['question'])}</h3><p><small>{escape(row['run_id'])}</small> {_draw_judged(row)}</p>{table}"


def _mark(parts: Sequence[Part], changed: Literal["removed", "added"]) -> str:
    """Draw one of two answers, with what the other does not say marked."""
    tag = "del" if changed == "removed" else "ins"
    return "".join(
        escape(part["text"]) if part["kind"] == "same" else f"<{tag}>{escape(part['text'])}</{tag}>"
        for part in parts
        if part["kind"] in ("same", changed)
    )


def _draw_judged(row: Mapping[str, Any]) -> str:
    judged = row["judged"]
    return f"<b class='{judged['now']}'>{judged['now']}</b>: {escape(judged['reason'])}" if judged else ""


def _draw_all(rows: Sequence[FleetRow]) -> str:
    drawn = []
    for row in rows:
        then, now, compared, judged = row["recorded"], row["ending"], row["compared"], row["judged"]
        changed = ", ".join(compared["flipped"]) if compared else row["problem"] or ""
        ended = [_show_outcome(ending) if ending else "" for ending in (then, now)]
        drawn.append(
            draw_row([row["run_id"], row["question"], *ended, changed, judged["now"] if judged else "", row["begins"]])
        )
    return draw_table(("run", "question", "then", "now", "changed", "judged", "first step"), drawn, "runs")


def _show_outcome(ending: Ending) -> str:
    return f"{ending['error'] or ending['outcome']}, confidence {ending['confidence']:.2f}"


def _list_places(places: Sequence[CitedPlace]) -> str:
    return "\n".join(f"{place['name']} ({place['start']}-{place['end']})" for place in places)


def _show_cost(cost: float | None) -> str:
    return "not known" if cost is None else f"${cost:.4f}"
