"""Stands round the ports of the library in one run, and notes of which documents they return something."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from domain.documents import DocumentList, ListedDocument, Match, Passage
from domain.history.lineage import UNKNOWN_REVISION, ReadDocuments
from domain.ports.calculation import Calculation, LookUp
from nodes.context import Context


def note_reads(context: Context) -> Context:
    """Return `context` with ports that note in its `reads` what they return.

    What is read by the ids of chunks, or computed from documents by their ids, was noted where these ids came from. A
    word that corrects a question is of no document: the search for it notes those that hold it.
    """
    calculator = context.calculator
    return replace(
        context,
        library=_Noting(context.library, context.reads),
        calculator=calculator and _Noting(calculator, context.reads),
    )


class _Noting:
    """A port whose replies are noted."""

    def __init__(self, port: Any, reads: ReadDocuments) -> None:
        self._port = port
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, getattr(self._port, name))

    async def _call(self, method: Any, /, *args: Any, **kwargs: Any) -> Any:
        reply = await method(*args, **kwargs)
        self._reads.note(_list_documents(reply))
        return reply


def _list_documents(reply: Any) -> Iterator[tuple[str, int]]:
    """Yield the documents, with their revisions, of which a port has returned something."""
    match reply:
        case Passage():
            yield reply.document_id, reply.revision
        case Match():
            yield reply.document_id, UNKNOWN_REVISION
        case ListedDocument():
            yield reply.id, UNKNOWN_REVISION
        case DocumentList():
            yield from _list_documents(reply.documents)
        case Calculation():
            yield from _list_documents(reply.used)
        case LookUp():
            yield from _list_documents([passage for passage, _ in reply.found])
        case list() | tuple():
            for each in reply:
                yield from _list_documents(each)
