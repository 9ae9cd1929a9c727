"""Tells what became of documents since answers cited them, and holds back answers that rested on what is gone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from domain.documents import Citation
from domain.outcome import Framing
from domain.ports.documents import DocumentCatalog
from domain.runs import RunStatus
from domain.scope import Scope
from domain.state import Turn, list_grounds
from domain.text.languages import detect_language
from domain.text.terms import analyse
from nodes.wording.notices import read_catalogue


async def hold_back(documents: DocumentCatalog, asker: Scope, turns: Sequence[Turn]) -> list[Turn]:
    """Return a conversation with a sentence in place of each answer that rests on a document which is gone, holds
    something else by now, or is not for the asker: the whole answer, because nothing tells which of its words are from
    which document. One whose documents stand again is as it was. Raises `DatabaseUnavailable`."""
    whole = [turn.get("held_back", turn) for turn in turns]
    resting = {document_id for turn in whole for document_id in list_grounds(turn)}
    known = Scope.within(asker.workspace_id, resting, groups=asker.groups)
    holding = await documents.read_hashes(known) if resting else {}
    told, asked = list[Turn](), set[str]()
    for turn in whole:
        asked.update(analyse(turn["question"]))
        stands = all(name in holding and cited in ("", holding[name]) for name, cited in list_grounds(turn).items())
        told.append(turn if stands else _hold_back(turn, asked))
    return told


def _hold_back(turn: Turn, asked: set[str]) -> Turn:
    """Return the turn with nothing in it but what its asker has said: `asked` are the terms of the questions so far."""
    notice = read_catalogue(detect_language(turn["question"]) or "en").library.held_back
    standalone = turn["standalone_question"]
    return {
        **turn,
        "standalone_question": standalone if asked.issuperset(analyse(standalone)) else turn["question"],
        "answer": notice,
        "documents": [],
        "headings": [],
        "choices": [],
        "framing": Framing(opening=len(notice), closing=0),
        "rests_on": {},
        "held_back": turn,
    }


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
