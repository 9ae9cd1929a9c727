"""Upgrades of saved states, from each version of the state's types to the next.

A function takes the fields that a state has and returns them in the shape of the next version. It may read the prose of
its own version, whose wording is fixed by now.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from domain.outcome import (
    Framing,
    LowConfidence,
    MissingWords,
    ModelAbstained,
    NothingFound,
    NothingQuotable,
    NothingSupported,
    Outcome,
    Reason,
    RetriesSpent,
    Uncited,
    judge_answer,
)
from domain.state import gather_scope
from domain.text.blocks import read_blocks

_FALLBACK = "The documents do not answer this."
_CAVEAT = "The documents may answer this only in part. "
_ADMISSION = re.compile(r" The sources do not mention (“[^”]*”(?: or “[^”]*”)*)\.$")
_NO_DOCUMENTS = "There was nothing to search in"
_NOT_SEARCHED: Mapping[str, Outcome] = {"conversational": "conversed", "out_of_scope": "declined"}


def _keep_what_was_found(values: dict[str, Any]) -> dict[str, Any]:
    """Add to candidates their relevance, and to an earlier attempt its candidates.

    Versions before 2 were not noted, and some of them had both already.
    """
    upgraded = dict(values)
    if "candidates" in values:
        upgraded["candidates"] = [{"relevance": None, **candidate} for candidate in values["candidates"]]
    if values.get("previous"):
        upgraded["previous"] = {"candidates": [], **values["previous"]}
    return upgraded


def _note_outcome(values: dict[str, Any]) -> dict[str, Any]:
    """Add the outcome, its reasons and the framing. Version 2 had them in the answer's text only."""
    upgraded = dict(values)
    fallback = ((values.get("profile") or {}).get("generate") or {}).get("fallback") or _FALLBACK
    if "turns" in values:
        upgraded["turns"] = [_note_outcome_of_turn(turn, fallback) for turn in values["turns"]]
    if "answer" in values:
        outcome, reasons, framing = _read_answer(values, fallback)
        upgraded |= {"outcome": outcome, "outcome_reasons": reasons, "framing": framing}
    return upgraded


def _note_outcome_of_turn(turn: Any, fallback: str) -> Any:
    try:
        return {"outcome": _find_outcome_of_turn(turn, fallback), **turn}
    except (TypeError, AttributeError, KeyError):
        # No turn that version 2 would have read; `read_turns` drops it.
        return turn


def _find_outcome_of_turn(turn: Mapping[str, Any], fallback: str) -> Outcome | None:
    if turn.get("stopped"):
        return None
    if turn["route"] in _NOT_SEARCHED:
        return _NOT_SEARCHED[turn["route"]]
    if not turn["documents"] and turn["answer"].startswith(fallback):
        return "abstained"
    is_plain = turn["documents"] and not turn["answer"].startswith((fallback, _CAVEAT))
    return "answered" if is_plain and not _ADMISSION.search(turn["answer"]) else "answered_with_caveat"


def _read_answer(values: Mapping[str, Any], fallback: str) -> tuple[Outcome | None, list[Reason], Framing]:
    answer: str = values["answer"]
    unframed = Framing(opening=0, closing=0)
    last = (values.get("turns") or [{}])[-1]
    stopped = last.get("stopped") and last.get("run_id") == values.get("run_id")
    if not answer or stopped or values.get("failure"):
        return None, [], unframed
    if values["route"] in _NOT_SEARCHED:
        return _NOT_SEARCHED[values["route"]], [], unframed
    by_model = [ModelAbstained(code="model_abstained", model=values.get("answered_by", ""))]
    if answer.startswith(fallback):
        if values["citations"]:
            return "answered_with_caveat", [*by_model], Framing(opening=len(fallback), closing=0)
        return "abstained", _explain_abstention(values, fallback), unframed
    reasons: list[Reason] = []
    opening = closing = 0
    if answer.startswith(_CAVEAT):
        opening = len(_CAVEAT)
        reasons.append(LowConfidence(code="low_confidence", confidence=values["confidence"]))
    if admission := _ADMISSION.search(answer):
        closing = len(admission[0])
        reasons.append(MissingWords(code="missing_words", words=re.findall("“([^”]*)”", admission[1])))
    if not values["citations"]:
        reasons.append(Uncited(code="uncited"))
    return judge_answer(reasons), reasons, Framing(opening=opening, closing=closing)


def _explain_abstention(values: Mapping[str, Any], fallback: str) -> list[Reason]:
    answer, answerer = values["answer"], values.get("answered_by", "")
    if answer.strip() != fallback and not answerer:
        nearest = list(dict.fromkeys(source["title"] for source in values["sources"]))[:3]
        reasons: list[Reason] = [
            NothingFound(
                code="nothing_found",
                searched=(values["queries_tried"] or [values["question"]])[0],
                nearest=nearest,
                scope_is_empty=_NO_DOCUMENTS in answer,
            )
        ]
        if values["retries"]:
            reasons.append(RetriesSpent(code="retries_spent", retries=values["retries"]))
        return reasons
    verification = values.get("verification") or {}
    if verification.get("status") == "reconciled":
        withdrawn = sum(claim["verdict"] == "unsupported" for claim in verification["claims"])
        return [NothingSupported(code="nothing_supported", claims=withdrawn)]
    if answerer in ("", "local"):
        return [NothingQuotable(code="nothing_quotable")]
    return [ModelAbstained(code="model_abstained", model=answerer)]


def _note_cited(values: dict[str, Any]) -> dict[str, Any]:
    """Add to the last turn the documents and sections that it cites; of turns before it nothing is known."""
    turns = list(values.get("turns") or [])
    if not turns or not isinstance(turns[-1], dict) or turns[-1].get("run_id") != values.get("run_id"):
        return values
    citations = values.get("citations") or []
    cited = {
        "document_ids": list(dict.fromkeys(citation["document_id"] for citation in citations)),
        "headings": [list(path) for path in dict.fromkeys(tuple(citation["heading_path"]) for citation in citations)],
    }
    return values | {"turns": [*turns[:-1], turns[-1] | cited]}


def _mark_blocks(values: dict[str, Any]) -> dict[str, Any]:
    """Make blocks of the sources' text, which had bare headings and wrapped lines before version 4: its headings are in
    `heading_path`, and a paragraph is one line. Offsets stay right."""
    if not values.get("sources"):
        return values
    return values | {"sources": [_mark_blocks_of_source(source) for source in values["sources"]]}


def _mark_blocks_of_source(source: dict[str, Any]) -> dict[str, Any]:
    text: str = source["text"]
    for heading in source["heading_path"]:
        if text.startswith(f"{heading}\n"):
            text = text[len(heading) :].lstrip()
    start = source["start"] + len(source["text"]) - len(text)
    for block in read_blocks(text):
        if block.kind == "paragraph":
            text = text[: block.start] + text[block.start : block.end].replace("\n", " ") + text[block.end :]
    return source | {"text": text, "start": start}


UPGRADES: Mapping[int, tuple[Callable[[dict[str, Any]], dict[str, Any]], ...]] = {
    1: (_keep_what_was_found,),
    2: (gather_scope, _note_outcome),
    3: (_note_cited, _mark_blocks),
}
"""By the version that they start from; the functions of one version run in order."""
