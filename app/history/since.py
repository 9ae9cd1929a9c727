"""Tells what became of documents since answers cited them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from domain.documents import Citation
from domain.ports.documents import DocumentCatalog
from domain.runs import RunStatus
from domain.scope import Scope


async def tell_since(documents: DocumentCatalog, workspace_id: str, runs: Sequence[RunStatus]) -> list[RunStatus]:
    """Return the runs with `since` in those of their citations and sources whose document holds something else by now,
    or is gone. Raises `DatabaseUnavailable`."""
    cited = {
        citation["document_id"]
        for run in runs
        for citation in (*_list_citations(run), *(run.shown["sources"] if run.shown else ()))
        if "content_hash" in citation
    }
    holding = await documents.read_hashes(Scope.within(workspace_id, cited)) if cited else {}
    return [_tell(run, holding) for run in runs]


def _list_citations(run: RunStatus) -> Sequence[Citation]:
    return run.ended["citations"] if run.ended and run.ended["type"] == "done" else ()


def _tell(run: RunStatus, holding: Mapping[str, str]) -> RunStatus:
    if run.ended and run.ended["type"] == "done":
        run = replace(run, ended={**run.ended, "citations": _compare(run.ended["citations"], holding)})
    if run.shown:
        run = replace(run, shown={**run.shown, "sources": _compare(run.shown["sources"], holding)})
    return run


def _compare(citations: Iterable[Citation], holding: Mapping[str, str]) -> list[Citation]:
    compared = []
    for citation in citations:
        now = holding.get(citation["document_id"])
        if "content_hash" in citation and now != citation["content_hash"]:
            citation = {**citation, "since": "deleted" if now is None else "changed"}
        compared.append(citation)
    return compared
