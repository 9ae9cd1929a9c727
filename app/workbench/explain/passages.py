"""The passages that a run found: what it read, what it left out, and the sources that these became part of."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Literal

from typing_extensions import TypedDict

from app.workbench.replay.saved_run import SavedRun, SavedStep
from app.workbench.tapes.tape import Call
from domain.profile import Profile

MAX_LEFT_OUT = 20
"""Passages shown that a search found, and that became no candidates."""
LEGS: tuple[Literal["dense", "lexical"], ...] = ("dense", "lexical")
_SEARCHES = frozenset({"search_dense", "search_lexical", "score_dense", "score_lexical"})


def read_passages(run: SavedRun) -> dict[str, Mapping[str, Any]]:
    """Return the passages that a run read or left out, by chunk."""
    found = dict(run.unread)
    for call in run.tape.calls if run.tape is not None else ():
        if call.method in ("read_passages", "read_around", "read_outline") and isinstance(call.reply, list):
            found.update({passage["chunk_id"]: passage for passage in map(plain, call.reply)})
    return found


def plain(value: Any) -> Any:
    """Return what a tape holds as it is read back, also before it was stored."""
    return value if isinstance(value, Mapping) else asdict(value)


def list_searches(run: SavedRun, number: int) -> list[Call]:
    """Return the searches of the retrieve step of that number."""
    calls = run.tape.calls if run.tape is not None else ()
    return [call for call in calls if call.method in _SEARCHES and call.step == number]


def find_source(
    sources: Iterable[Mapping[str, Any]], candidate: Mapping[str, Any], passage: Mapping[str, Any] | None
) -> int | None:
    """Return the number of the source that the candidate became, or is a part of."""
    for source in sources:
        if source["chunk_id"] == candidate["chunk_id"]:
            return int(source["number"])
        # A source is widened, and holds the neighbours of what was found.
        if passage is None or source["document_id"] != candidate["document_id"]:
            continue
        if source["start"] <= passage["start"] and passage["end"] <= source["end"]:
            return int(source["number"])
    return None


class LeftOut(TypedDict):
    """A passage that a search found, and that became no candidate."""

    chunk_id: str
    document_id: str
    dense: float | None
    lexical: float | None
    missed: float | None
    """How far it is below the profile's threshold of similarity; None where that did not leave it out."""


def list_left_out(run: SavedRun, step: SavedStep) -> list[LeftOut]:
    """List what the searches of a retrieve step found and what became no candidate, the most similar first. Empty
    without a tape."""
    scores: dict[str, dict[str, float]] = {name: {} for name in LEGS}
    documents: dict[str, str] = {}
    for call in list_searches(run, step.number):
        leg = call.method.removeprefix("search_").removeprefix("score_")
        for match in map(plain, call.reply or []):
            scores[leg].setdefault(match["chunk_id"], match["score"])
            documents.setdefault(match["chunk_id"], match["document_id"])
    floor = Profile.model_validate(step.values["profile"]).retrieval.similarity_threshold
    candidates = {each["chunk_id"] for each in step.values["candidates"]}
    left = sorted(documents.keys() - candidates, key=lambda chunk_id: (-scores["dense"].get(chunk_id, -1.0), chunk_id))
    found = []
    for chunk_id in left[:MAX_LEFT_OUT]:
        similarity = scores["dense"].get(chunk_id)
        missed = None if floor is None or similarity is None or similarity >= floor else floor - similarity
        lexical = scores["lexical"].get(chunk_id)
        found.append(
            LeftOut(
                chunk_id=chunk_id, document_id=documents[chunk_id], dense=similarity, lexical=lexical, missed=missed
            )
        )
    return found
