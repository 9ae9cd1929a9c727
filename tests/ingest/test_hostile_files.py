"""Files that were built to stop the service are read or refused, within the limits of a worker.

`hostile_files.py` makes them.
"""

import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from app.ingest.parser_workers import ParserWorkers
from app.ingest.preparation import prepare
from app.ingest.reading import read_document
from domain.documents import Chunk, ParsedDocument
from domain.errors import DocumentError
from tests.ingest.hostile_files import FILES, reach_out

pytestmark = pytest.mark.usefixtures("parser_processes")


def read(name: str) -> "partial[tuple[ParsedDocument, list[Chunk]]]":
    return partial(prepare, name, FILES[name](), media_type=None, max_bytes=50_000_000)


async def test_hostile_files_are_read(parsers: ParserWorkers) -> None:
    for name in ("deep-front-matter.md", "merged-rows.docx", "wide-cell.docx", "nested-tables.docx", "merged.xlsx"):
        _, chunks = await parsers.run(read(name))
        assert len(chunks) < 10, name


async def test_hostile_files_are_refused(parsers: ParserWorkers) -> None:
    for name, says in (
        ("spaces-in-front-matter.md", "holds no text"),
        ("page-tree-in-a-circle.pdf", "is damaged"),
        ("zip-bomb.pptx", "unpacks to more than"),
        ("multiparts.eml", "nested too deeply"),
    ):
        with pytest.raises(DocumentError, match=says):
            await parsers.run(read(name))


async def test_a_file_that_takes_more_memory_than_a_worker_has_is_refused() -> None:
    async with ParserWorkers(memory_mb=256) as parsers:
        with pytest.raises(DocumentError, match=r"256 MB|cannot be read"):
            await parsers.run(read("nested-b.html"))


def test_no_file_is_read_from_elsewhere(tmp_path: Path) -> None:
    """Files that name another file of this machine, or an address, in every way that their format has."""
    secret = "a word that only the other file holds"
    other = tmp_path / "other.txt"
    other.write_text(secret)
    texts = {}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        for name, data in reach_out(str(other), f"http://127.0.0.1:{listener.getsockname()[1]}").items():
            with suppress(DocumentError):
                texts[name] = read_document(name, data).text
            with pytest.raises(BlockingIOError):  # nobody has called
                listener.accept()
    assert [name for name, text in texts.items() if secret in text] == []
    assert len([name for name, text in texts.items() if "text" in text]) > 10, texts
