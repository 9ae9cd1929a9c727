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
from app.evaluation.corpus import find_shelf
from app.evaluation.evaluation import Evaluated, Options, Result, evaluate
from app.evaluation.report import list_metrics, write_report
from app.evaluation.sets import EvaluationSet, SetError, read_sets
from app.wiring.services import Services
from domain.documents import ParsedDocument, Section
from domain.profile import MODES
from tests.conftest import HANDBOOK

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def services(module_services: Services) -> Services:
    """One for all tests here: each leaves the database as it was, which the first one checks."""
    return module_services


CORPUS = [
    {"id": "falke/1", "title": "Falke", "text": "The Falke weather station has a warranty of 36 months."},
    {"id": "amsel#2", "title": "Amsel", "text": "The Amsel rain gauge has a warranty of 24 months."},
    {"id": "drossel", "title": "Drossel", "text": "The Drossel anemometer is calibrated in the wind tunnel of Umeå."},
    {"id": "empty", "title": "Empty", "text": ""},
]
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "months",
        "question": "How many months of warranty has the Falke weather station?",
        "type": "fact",
        "answers": ["36 months"],
        "answerable": True,
        "relevant": [{"doc": "falke/1", "grade": 1, "spans": [[44, 53]]}],
    },
    {
        "id": "follow-up",
        "question": "Where is it calibrated?",
        "type": "follow-up",
        "answers": ["Umeå"],
        "answerable": True,
        "relevant": [{"doc": "drossel"}],
        "history": [
            {"role": "user", "content": "What does the Drossel measure?"},
            {"role": "assistant", "content": "Wind."},
        ],
    },
    {"id": "unanswerable", "question": "Who won the chess olympiad of 1958?", "type": "none", "answerable": False},
]


def write_set(folder: Path, questions: list[dict[str, Any]], corpus: list[dict[str, Any]] | None) -> EvaluationSet:
    folder.mkdir(exist_ok=True)
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in questions), "utf-8")
    if corpus is not None:
        (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in corpus), "utf-8")
    [each] = read_sets([str(folder)], folder, workspace=None, limit=None)
    return each


async def run(
    services: Services, each: EvaluationSet, options: Options, profiles: tuple[str, ...] = ("standard",)
) -> tuple[Evaluated, list[tuple[str, int, int]]]:
    seen: list[tuple[str, int, int]] = []
    modes = [MODES[name] for name in profiles]
    [evaluated] = await evaluate(services, [each], modes, options, lambda *done: seen.append(done))
    return evaluated, seen


async def test_questions_go_through_the_graph_and_leave_nothing_behind(services: Services, tmp_path: Path) -> None:
    each = write_set(tmp_path / "birds", QUESTIONS, CORPUS)
    evaluated, seen = await run(services, each, Options(), ("standard", "fast"))
    standard, fast = evaluated.results
    outcomes = standard.outcomes
    assert outcomes["months"].ranking[0] == "falke/1"
    assert "36 months" in outcomes["months"].answer
    assert "Drossel" in outcomes["follow-up"].standalone
    assert outcomes["follow-up"].ranking[0] == "drossel"
    assert outcomes["unanswerable"].citations == []
    assert {"route", "retrieve", "rerank", "grade", "generate", "total"} <= outcomes["months"].timings.keys()
    assert standard.metrics["ndcg@10"] == standard.metrics["recall@5"] == 1
    assert standard.metrics["contains_gold"] == standard.metrics["citation_recall"] == 1
    assert standard.metrics["abstention_recall"] == standard.metrics["abstention_auc"] == 1
    assert standard.metrics["routing_recall.needs_retrieval"] == 1
    assert standard.metrics["failed"] == standard.metrics["calls"] == 0
    assert seen[-1] == ("birds: fast", 3, 3)
    assert list_metrics([evaluated]) == {"birds": {"standard": standard.metrics, "fast": fast.metrics}}
    assert list_metrics([replace(evaluated, results=[fast])]) == {"birds": fast.metrics}

    page = write_report([evaluated], tmp_path / "out", services.runs.fingerprint).read_text("utf-8")
    assert "Who won the chess olympiad" in page
    assert not re.search(r"""(?:src|href)=|url\(|<script""", page)
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["sets"][0]["profiles"][0]["by_type"]["fact"]["ndcg@10"] == 1
    assert report["sets"][0]["comparisons"][0]["differences"]["ndcg@10"] == 0

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]
    for table in ("documents", "term_frequencies", "vocabulary", "checkpoints", "runs", "threads"):
        assert await count(services, table) == 0


async def count(services: Services, table: str) -> int:
    assert services.settings.database_url
    async with await psycopg.AsyncConnection.connect(services.settings.database_url.get_secret_value()) as connection:
        cursor = await connection.execute(SQL("SELECT count(*) FROM {}").format(Identifier(table)))
        row = await cursor.fetchone()
    assert row
    return int(row[0])


async def test_what_is_kept_is_not_brought_in_again(services: Services, tmp_path: Path) -> None:
    each = write_set(tmp_path / "birds", QUESTIONS[:1], CORPUS)
    evaluated, seen = await run(services, each, Options(keep=True))
    assert [done for label, *done in seen if label == "birds: documents"] == [[0, 3], [1, 3], [2, 3], [3, 3]]
    assert evaluated.kept is not None
    assert len(await services.library.documents.list(evaluated.kept)) == 3
    _, seen = await run(services, each, Options(keep=True))
    assert [done for label, *done in seen if label == "birds: documents"] == [[3, 3]]
    evaluated, _ = await run(services, each, Options())
    assert evaluated.kept is None


async def test_pages_of_the_chosen_pdf(services: Services, tmp_path: Path) -> None:
    (tmp_path / "manuals" / "pdfs").mkdir(parents=True)
    for name, hours in (("Star", "40"), ("Kestrel", "90")):
        pdf = FPDF()
        pdf.set_font("helvetica", size=12)
        for text in (
            f"This is the manual of the {name} drone.\nRead all of it before the first flight.",
            f"Service\nThe motor of the drone must be serviced every {hours} hours of flight.",
        ):
            pdf.add_page()
            pdf.multi_cell(0, text=text)
        pdf.output(str(tmp_path / "manuals" / "pdfs" / f"{name}.pdf"))
    each = write_set(
        tmp_path / "manuals",
        [
            {
                "id": "service",
                "question": "After how many hours of flight must the motor be serviced?",
                "pdf": "Kestrel",
                "answers": ["90"],
                "answerable": True,
                "relevant": [{"doc": "Kestrel#p2", "page": 2}],
            }
        ],
        [
            {"id": f"{n}#p{p}", "title": n, "text": "", "metadata": {"pdf": f"pdfs/{n}.pdf", "page": p}}
            for n in ("Star", "Kestrel")
            for p in (1, 2)
        ],
    )
    evaluated, _ = await run(services, each, Options())
    [result] = evaluated.results
    assert result.outcomes["service"].ranking[0] == "Kestrel#p2"
    assert {doc.split("#")[0] for doc in result.outcomes["service"].ranking} == {"Kestrel"}
    assert [cited.doc for cited in result.outcomes["service"].citations] == ["Kestrel#p2"]
    assert result.metrics["recall@5"] == result.metrics["contains_gold"] == 1


async def test_ones_own_questions_about_a_workspace(services: Services, tmp_path: Path) -> None:
    await services.library.ingestion.add("team", "handbook.md", HANDBOOK)
    rows = [{**QUESTIONS[0], "relevant": ["handbook.md"]}]
    (tmp_path / "ours.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    [each] = read_sets([str(tmp_path / "ours.jsonl")], tmp_path, workspace="team", limit=None)
    evaluated, _ = await run(services, each, Options(workspace="team"))
    assert evaluated.results[0].metrics["mrr@10"] == 1
    with pytest.raises(SetError, match=r"The workspace 'other' holds no document.*askgraph ingest --workspace other"):
        await run(services, each, Options(workspace="other"))

    def ask_about(*names: str) -> EvaluationSet:
        rows = [{**QUESTIONS[0], "id": name, "relevant": [name]} for name in names]
        return write_set(tmp_path / "others", rows, [{"id": name, "text": "x"} for name in names])

    with pytest.raises(SetError, match=r"'no\.md' names a document that the workspace 'team' lacks: 'no\.md'"):
        await find_shelf(services, "team", ask_about("no.md"))
    with pytest.raises(SetError, match=r"'handbook' names 'handbook', which is called 'handbook\.md' elsewhere"):
        await find_shelf(services, "team", ask_about("handbook.md", "handbook"))

    await services.library.ingestion.add("team", "old/handbook.md", HANDBOOK + b"\nOutdated.\n")
    with pytest.raises(SetError, match=r"names 'handbook\.md', as 2 documents of the workspace 'team' are called"):
        await find_shelf(services, "team", ask_about("handbook.md"))


async def test_a_routing_set(services: Services, tmp_path: Path) -> None:
    requests = {"hello": "conversational", "who made you": "meta", "what is the square root of nine": "oos"}
    routing = write_set(
        tmp_path / "routing", [{"id": text, "question": text, "type": kind} for text, kind in requests.items()], None
    )
    evaluated, _ = await run(services, routing, Options())
    assert evaluated.results[0].metrics["routing_recall.conversational"] == 1
    assert evaluated.results[0].metrics["off_topic_stopped"] == 1


async def test_a_page_of_hostile_questions_is_text(services: Services, tmp_path: Path) -> None:
    asked = "<img src=x onerror=alert(1)> ${created} & 'quoted'"
    each = write_set(tmp_path / "x", [{"id": "<b>", "question": asked, "type": "oos"}], None)
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
