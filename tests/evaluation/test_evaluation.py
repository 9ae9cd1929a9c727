"""A tiny set through the real graph."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fpdf import FPDF
from psycopg.sql import SQL, Identifier

from app.evaluation.asking import Outcome
from app.evaluation.evaluation import Evaluated, Options, Result, evaluate
from app.evaluation.report import list_metrics, write_report
from app.evaluation.sets import EvaluationSet, SetError, read_sets
from app.evaluation.shelf import find_shelf
from app.wiring.services import Services
from domain.documents import ParsedDocument, Section
from domain.profile import MODES
from tests.conftest import HANDBOOK

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def services(module_services: Services) -> Services:
    """One for all tests here: each leaves the database as it was, which the first one checks."""
    return module_services


FILES = {
    "falke.md": "# Falke\n\nThe Falke weather station has a warranty of 36 months.",
    "amsel.md": "# Amsel\n\nThe Amsel rain gauge has a warranty of 24 months.",
    "drossel.md": "# Drossel\n\nThe Drossel anemometer measures wind. It is calibrated in the wind tunnel of Umeå.",
}
MONTHS = {
    "id": "months",
    "question": "How many months of warranty has the Falke weather station?",
    "type": "fact",
    "answers": ["36 months"],
    "answerable": True,
    "relevant": ["falke.md"],
}
QUESTIONS: list[dict[str, Any]] = [
    MONTHS,
    {
        "id": "follow-up",
        "question": "Where is it calibrated?",
        "type": "follow-up",
        "answers": ["Umeå"],
        "answerable": True,
        "relevant": ["drossel.md"],
        "before": ["What does the Drossel measure?"],
    },
    {"id": "unanswerable", "question": "Who won the chess olympiad of 1958?", "type": "none", "answerable": False},
]


def write_set(file: Path, questions: list[dict[str, Any]]) -> EvaluationSet:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in questions), "utf-8")
    [each] = read_sets([str(file)], workspace="team", limit=None)
    return each


async def run(
    services: Services, each: EvaluationSet, options: Options, profiles: tuple[str, ...] = ("standard",)
) -> tuple[Evaluated, list[tuple[str, int, int]]]:
    seen: list[tuple[str, int, int]] = []
    modes = [MODES[name] for name in profiles]
    [evaluated] = await evaluate(services, [each], modes, options, lambda *done: seen.append(done))
    return evaluated, seen


async def test_questions_go_through_the_graph_and_leave_no_trace(services: Services, tmp_path: Path) -> None:
    for name, text in FILES.items():
        await services.library.ingestion.add("birds", name, text.encode())
    each = write_set(tmp_path / "birds.jsonl", QUESTIONS)
    evaluated, seen = await run(services, each, Options(workspace="birds"), ("standard", "fast"))
    standard, fast = evaluated.results
    outcomes = standard.outcomes
    assert outcomes["months"].ranking[0] == "falke.md"
    assert "36 months" in outcomes["months"].answer
    assert "Drossel" in outcomes["follow-up"].standalone
    assert outcomes["follow-up"].ranking[0] == "drossel.md"
    assert outcomes["unanswerable"].citations == []
    assert {"route", "retrieve", "rerank", "grade", "generate", "total"} <= outcomes["months"].timings.keys()
    assert standard.metrics["ndcg@10"] == standard.metrics["recall@5"] == 1
    assert standard.metrics["contains_gold"] == standard.metrics["citation_recall"] == 1
    assert standard.metrics["abstention_recall"] == 1
    assert standard.metrics["failed"] == standard.metrics["calls"] == 0
    assert seen[-1] == ("birds: fast", 3, 3)
    assert list_metrics([evaluated]) == {"birds": {"standard": standard.metrics, "fast": fast.metrics}}
    assert list_metrics([replace(evaluated, results=[fast])]) == {"birds": fast.metrics}

    page = write_report([evaluated], tmp_path / "out", services.runs.fingerprint).read_text("utf-8")
    assert "Who won the chess olympiad" in page
    assert not re.search(r"""(?:src|href)=|url\(|<script""", page)
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["sets"][0]["comparisons"][0]["differences"]["ndcg@10"] == 0

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]
    for table in ("state_packs", "runs", "threads"):
        assert await count(services, table) == 0


async def count(services: Services, table: str) -> int:
    assert services.settings.database_url
    async with await psycopg.AsyncConnection.connect(services.settings.database_url.get_secret_value()) as connection:
        cursor = await connection.execute(SQL("SELECT count(*) FROM {}").format(Identifier(table)))
        row = await cursor.fetchone()
    assert row
    return int(row[0])


async def test_the_page_of_the_chosen_pdf_is_asked_for(services: Services, tmp_path: Path) -> None:
    for name, hours in (("Star", "40"), ("Kestrel", "90")):
        pdf = FPDF()
        pdf.set_font("helvetica", size=12)
        for text in (
            f"This is the manual of the {name} drone.\nRead all of it before the first flight.",
            f"Service\nThe motor of the drone must be serviced every {hours} hours of flight.",
        ):
            pdf.add_page()
            pdf.multi_cell(0, text=text)
        await services.library.ingestion.add("manuals", f"{name}.pdf", bytes(pdf.output()))
    question = {
        "id": "service",
        "question": "After how many hours of flight must the motor be serviced?",
        "pdf": "Kestrel",
        "answers": ["90"],
        "answerable": True,
        "relevant": [{"doc": "Kestrel.pdf", "page": 2}],
    }
    evaluated, _ = await run(services, write_set(tmp_path / "pdf.jsonl", [question]), Options(workspace="manuals"))
    [result] = evaluated.results
    assert result.outcomes["service"].ranking[0] == "Kestrel.pdf, page 2"
    assert {doc.split(",")[0] for doc in result.outcomes["service"].ranking} == {"Kestrel.pdf"}
    assert [cited.doc for cited in result.outcomes["service"].citations] == ["Kestrel.pdf, page 2"]
    assert result.metrics["recall@5"] == result.metrics["contains_gold"] == 1


async def test_ones_own_questions_about_a_workspace(services: Services, tmp_path: Path) -> None:
    await services.library.ingestion.add("team", "handbook.md", HANDBOOK)
    each = write_set(tmp_path / "ours.jsonl", [{**MONTHS, "relevant": ["handbook.md"]}])
    evaluated, _ = await run(services, each, Options(workspace="team"))
    assert evaluated.results[0].metrics["mrr@10"] == 1
    with pytest.raises(SetError, match=r"The workspace 'other' holds no document.*askgraph ingest --workspace other"):
        await run(services, each, Options(workspace="other"))

    def ask_about(*names: str) -> EvaluationSet:
        return write_set(tmp_path / "others.jsonl", [{**MONTHS, "id": name, "relevant": [name]} for name in names])

    with pytest.raises(SetError, match=r"'no\.md' names a document that the workspace 'team' lacks: 'no\.md'"):
        await find_shelf(services, "team", ask_about("no.md"))
    with pytest.raises(SetError, match=r"'handbook' names 'handbook', which is called 'handbook\.md' elsewhere"):
        await find_shelf(services, "team", ask_about("handbook.md", "handbook"))

    await services.library.ingestion.add("team", "old/handbook.md", HANDBOOK + b"\nOutdated.\n")
    with pytest.raises(SetError, match=r"names 'handbook\.md', as 2 documents of the workspace 'team' are called"):
        await find_shelf(services, "team", ask_about("handbook.md"))


async def test_a_page_of_hostile_questions_is_text(services: Services, tmp_path: Path) -> None:
    asked = "<img src=x onerror=alert(1)> ${created} & 'quoted'"
    each = write_set(tmp_path / "x.jsonl", [{"id": "<b>", "question": asked, "type": "oos"}])
    hostile = Evaluated(each, [])
    outcome = Outcome(id="<b>", answer="</td><script>", route="needs_retrieval", warnings=["<i>"])
    page = write_report([replace(hostile, results=[Result("<u>", {"<m>": 1.0}, {"<b>": outcome})])], tmp_path, "f")
    html = page.read_text("utf-8")
    assert "&lt;img src=x onerror=alert(1)&gt; ${created}" in html
    for tag in ("<img", "<script", "</td><script", "<u>", "<m>", "<i>"):
        assert tag not in html


async def test_parsed_documents_are_replaced_only_where_they_changed(services: Services) -> None:
    text = HANDBOOK.decode()
    parsed = ParsedDocument("Handbook", text, "text/plain", (Section(0, len(text), ()),))
    added = await services.library.ingestion.add_parsed("w", "h.txt", parsed, "1")
    same = await services.library.ingestion.add_parsed("w", "h.txt", parsed, "1")
    other = await services.library.ingestion.add_parsed("w", "h.txt", parsed, "2")
    assert (added.status, same.status, other.status) == ("added", "unchanged", "updated")
    assert (added.document_id, other.embedded) == (other.document_id, 0)
