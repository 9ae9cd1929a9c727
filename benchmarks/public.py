"""Brings public sets into workspaces of their names, and writes their questions for `askgraph eval`.

    python -m benchmarks.public ../shared/bench/squad2 ...
    askgraph eval squad2.jsonl --workspace squad2

A set is a folder with `corpus.jsonl.gz` (id, title, text) and `queries.jsonl.gz`. Texts stay as they are, so that
character offsets stay true. Of a set with `pdfs/` the files are brought in instead, and its documents are their pages.
Earlier messages of a conversation are asked, not put into its thread. What is there already is not embedded again.
"""

import asyncio
import gzip
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from app.evaluation.sets import Question
from app.settings import read_settings
from app.support.cases import work_side_by_side
from app.wiring.services import Services, open_services
from domain.documents import ParsedDocument, Section

AT_ONCE = 4
"""Documents at once, so that one is written while the next is embedded."""

Row = dict[str, Any]


def read_lines(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


async def add_texts(services: Services, workspace: str, corpus: list[Row]) -> None:
    queue = iter(corpus)

    async def work() -> None:
        for document in queue:
            text = document["text"].replace("\0", " ")
            parsed = ParsedDocument(document["title"], text, "text/plain", (Section(0, len(text), ()),))
            digest = sha256(f"{document['title']}\0{text}".encode()).hexdigest()
            await services.library.ingestion.add_parsed(workspace, f"{document['id']}.txt", parsed, digest)

    await work_side_by_side(work, AT_ONCE)


def write_question(query: Row, names: dict[str, Row]) -> str:
    """Return the query as a line of a set, with the documents and pages that `names` knows."""
    before = [message["content"] for message in query.get("history") or [] if message["role"] == "user"]
    answers = query["answers"] if query.get("answers_known", True) else []
    relevant = [each | names[each["doc"]] for each in query["relevant"] if each["doc"] in names]
    question = Question.model_validate(query | {"before": before, "answers": answers, "relevant": relevant})
    return question.model_dump_json(exclude_defaults=True)


async def bring_in(services: Services, folder: Path) -> list[str]:
    """Ingest the corpus, and return the lines of the set."""
    corpus = [document for document in read_lines(folder / "corpus.jsonl.gz") if document["text"].strip()]
    if pdfs := sorted((folder / "pdfs").glob("*.pdf")):
        of = {document["id"]: document["metadata"] for document in corpus}
        names = {name: {"doc": Path(page["pdf"]).name, "page": page["page"]} for name, page in of.items()}
        for file in pdfs:
            report = await services.library.ingestion.add(folder.name, file.name, file.read_bytes())
            assert report.document_id, report.error
    else:
        names = {document["id"]: {"doc": f"{document['id']}.txt"} for document in corpus}
        await add_texts(services, folder.name, corpus)
    await services.library.wait_for_indexes()
    return [write_question(query, names) for query in read_lines(folder / "queries.jsonl.gz")]


async def bring_in_all(folders: list[Path]) -> dict[str, list[str]]:
    async with open_services(read_settings(load_samples=False)) as services:
        return {folder.name: await bring_in(services, folder) for folder in folders}


if __name__ == "__main__":
    for name, lines in asyncio.run(bring_in_all([Path(folder) for folder in sys.argv[1:]])).items():
        Path(f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        print(f"askgraph eval {name}.jsonl --workspace {name}")
