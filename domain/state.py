"""The graph's state: what a checkpoint holds.

Only plain JSON values, so that strict msgpack reads them back and an engineer can read them too. Each node
declares the part it reads and the part it writes as TypedDicts of its own; mypy then catches a misspelt key, which
LangGraph would drop silently.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from domain.documents import Candidate, Citation, Source, Verification
from domain.scope import Scope, ScopeJson

Route = Literal["needs_retrieval", "conversational", "out_of_scope"]
Level = Literal["high", "medium", "low", "none"]

STATE_VERSION = 3
"""Of the types of this module, as each checkpoint's metadata has it. A field that is new to `PerQuestion` leaves it as
it is; any other change adds one, and a function to `app/runs/states.py` that makes of an older state one of today."""

MAX_QUESTION = 2000
"""Characters; a longer question is refused before it costs anything."""

REMEMBERED_TURNS = 12
"""How many turns of a conversation stay in the state; older ones cannot be referred to any more."""


class Usage(TypedDict):
    """Model calls of one step."""

    node: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars; None where the model's price is not known."""


def add_costs(costs: Iterable[float | None]) -> float | None:
    """US dollars together; None where one of the prices is not known."""
    known: list[float] = []
    for cost in costs:
        if cost is None:
            return None
        known.append(cost)
    return sum(known)


class Step(TypedDict):
    """What one execution of a node took. Written by the graph's instrumentation, not by nodes."""

    node: str
    ms: float
    warnings: list[str]
    usage: list[Usage]


class Degradation(TypedDict):
    """What a run went on without."""

    node: str
    """The step that had to do without."""
    code: str
    """Why: an error's stable name, or `over_budget`."""
    given_up: str
    """What was given up: usually a model's name."""
    instead: str
    """What took its place: another model, or `local`."""
    message: str
    """The same in words, for people; `warnings` holds it too."""


class Failure(TypedDict):
    """Why the answerer that was asked last has not answered. Its draft, as far as it was streamed, is in `answer`."""

    code: str
    given_up: str
    message: str


class Turn(TypedDict):
    """A finished question and answer of the thread."""

    run_id: str
    question: str
    standalone_question: str
    route: Route
    answer: str
    documents: list[str]
    """Titles of the documents cited."""
    stopped: NotRequired[bool]
    """Set where somebody stopped it: the answer is what was written until then."""


_TURN = TypeAdapter(Turn)


class TurnInput(TypedDict):
    """What starts a turn."""

    run_id: str
    question: str
    scope: ScopeJson
    mode: str
    profile: dict[str, Any]


def gather_scope(values: Mapping[str, Any]) -> dict[str, Any]:
    """Gather `workspace_id` and `document_ids`, which states before version 3 held side by side, into `scope`."""
    if "scope" in values or "workspace_id" not in values:
        return dict(values)
    rest = {key: value for key, value in values.items() if key not in ("workspace_id", "document_ids")}
    return rest | {"scope": Scope.within(values["workspace_id"], values.get("document_ids")).to_json()}


class Attempt(TypedDict):
    """What an earlier retrieval of the same question had found, kept in case the retry finds less."""

    query: str
    candidates: list[Candidate]
    sources: list[Source]
    confidence: float
    missing: list[str]


class PerQuestion(TypedDict):
    """The fields that belong to one question and must not leak into the next. `route` resets them all."""

    standalone_question: str
    route: Route
    route_reason: str
    query: str
    """What is searched for: the standalone question, or its last reformulation."""
    queries_tried: list[str]
    retries: int
    candidates: list[Candidate]
    sources: list[Source]
    set_aside: list[Source]
    """The last of the sources, where the prompt was too long for all of them. They are numbered on from `sources`."""
    previous: Attempt | None
    confidence: float
    """How likely it is that the sources hold the answer, 0-1."""
    level: Level
    missing: list[str]
    """Words of the question that no source covers; what a reformulation works on."""
    parts: list[str]
    """What a retry searches for besides `query`: parts of the question, each a query."""
    answerer: str
    """Who writes the answer: `model`, which is the tier that the profile names, `fallback 1` and on, or `local`. Empty:
    the first of them that there is."""
    answered_by: str
    """Who has written it: a model's name, or `local`."""
    failure: Failure | None
    """Set while the answer still has to be written by somebody else."""
    degraded: list[Degradation]
    """What the run went on without, in order."""
    answer: str
    citations: list[Citation]
    verification: Verification
    steps: list[Step]


class AnswerState(TurnInput, PerQuestion):
    """Everything a checkpoint holds. `turns` alone outlives the question."""

    turns: list[Turn]


def remember(turns: list[Turn], turn: Turn) -> list[Turn]:
    """The conversation with `turn` added, or put in place of what the same run had said before."""
    return [*(t for t in turns if t["run_id"] != turn["run_id"]), turn][-REMEMBERED_TURNS:]


def read_turns(value: object) -> list[Turn]:
    """The turns of a saved state that have today's shape. One that another version wrote differently is forgotten,
    which costs a follow-up its context and not the thread its life."""
    turns = []
    for turn in value if isinstance(value, list) else []:
        try:
            turns.append(_TURN.validate_python(turn, strict=True))
        except ValidationError:
            continue
    return turns


def blank_question() -> PerQuestion:
    """The per-question fields before anything is known."""
    return PerQuestion(
        standalone_question="",
        route="needs_retrieval",
        route_reason="",
        query="",
        queries_tried=[],
        retries=0,
        candidates=[],
        sources=[],
        set_aside=[],
        previous=None,
        confidence=0.0,
        level="none",
        missing=[],
        parts=[],
        answerer="",
        answered_by="",
        failure=None,
        degraded=[],
        answer="",
        citations=[],
        verification={"status": "skipped", "claims": []},
        steps=[],
    )
