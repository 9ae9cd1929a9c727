"""The graph's state, as checkpoints store it.

It holds plain JSON values only: strict msgpack reads them back, and so can an engineer. Each node declares the part it
reads and the part it writes as TypedDicts of its own. mypy then catches a misspelt key, which LangGraph would drop
silently.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NotRequired, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from domain.documents import Candidate, Citation, Source, Verification
from domain.outcome import Choice, Framing, Outcome, Reason
from domain.scope import ScopeJson
from domain.text.languages import Language

Route = Literal["needs_retrieval", "about_library", "conversational", "out_of_scope"]
Task = Literal["look_up", "compare", "list", "compute", "summarise"]
Level = Literal["high", "medium", "low", "none"]
Lack = Literal["nothing", "searches", "tools"]

STATE_VERSION = 1
"""Version of the types in this module; each checkpoint's metadata holds it. A new field of `PerQuestion` with a blank
default needs no new version. Any other change does, and an upgrade of older states in `app/history/states.py`."""

MAX_QUESTION = 2000
"""Characters; a longer question is refused before it costs anything."""

REMEMBERED_TURNS = 12
"""Turns of a conversation that stay in the state. Questions cannot refer to older ones."""


class Usage(TypedDict):
    """The tokens and costs of one call of a model, filed under its step."""

    node: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars; None where the model's price is unknown."""
    estimated: bool
    """True where the call was given up, so that tokens and price are an estimate."""
    cached_tokens: NotRequired[int]
    """Tokens among those read that the provider knew from an earlier request; absent where it says none."""


UNSURE = 0.79
"""Confidence at most of an answer that may be right and is not seen to be: below "high"."""


def level_of(confidence: float) -> Level:
    """Return the word for a confidence."""
    if confidence >= 0.8:
        return "high"
    if confidence >= 0.6:
        return "medium"
    return "low" if confidence >= 0.4 else "none"


def add_costs(costs: Iterable[float | None]) -> float | None:
    """Return the sum in US dollars; None where one of the prices is unknown."""
    known: list[float] = []
    for cost in costs:
        if cost is None:
            return None
        known.append(cost)
    return sum(known)


class ExecutedStep(TypedDict):
    """The record of one execution of a node. The graph's instrumentation writes it, not the node."""

    node: str
    ms: float
    warnings: list[str]
    usage: list[Usage]
    read: NotRequired[dict[str, int]]
    """What the ports of the library have returned since the step before: the revisions of documents, by their ids."""


def count_tokens(usage: Iterable[Usage]) -> int:
    """Return the number of tokens that models read and wrote."""
    return sum(used["input_tokens"] + used["output_tokens"] for used in usage)


def sum_timings(steps: Iterable[ExecutedStep]) -> dict[str, float]:
    """Return the milliseconds that each node took, all of its executions together."""
    timings: dict[str, float] = {}
    for step in steps:
        timings[step["node"]] = round(timings.get(step["node"], 0.0) + step["ms"], 2)
    return timings


CUT = "length"
"""Code of an answer that ends before its end, because it was as long as it may be."""


class Degradation(TypedDict):
    """One fallback of a run: something failed or was too expensive, and something else took its place."""

    node: str
    """The step that fell back."""
    code: str
    """The reason: an error's stable name, or `over_budget`."""
    given_up: str
    """The thing that the step fell back from, usually a model's name."""
    instead: str
    """The replacement: another model, or `local`."""
    message: str
    """The same in words; also among the step's `warnings`."""


class Failure(TypedDict):
    """Why the answerer that was asked last failed. What it streamed before is in `answer`."""

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
    document_ids: NotRequired[list[str]]
    """Ids of the documents cited, in the same order."""
    headings: NotRequired[list[list[str]]]
    """The headings above what was cited, outermost first, one path per section."""
    outcome: Outcome | None
    """None where the turn was stopped before it had one."""
    framing: NotRequired[Framing]
    """What in the answer is no statement of the documents. Absent where all of it is one."""
    choices: NotRequired[list[Choice]]
    """What was offered to choose from, where the outcome is `asked_back`."""
    stopped: NotRequired[bool]
    """True where somebody stopped the turn; `answer` is what was written until then."""
    rests_on: NotRequired[dict[str, str]]
    """Content hashes of the documents cited, by id, and of those that the earlier turns rest on, whose words this one
    may repeat. An empty hash: any content. Absent in older states, and where there is none; see `list_grounds`."""
    held_back: NotRequired["Turn"]
    """The whole turn, while what it rests on does not stand as it was cited: `answer` says so, and nothing of it is
    told to a model or carried on (`app/history/since.py`)."""


_TURN = TypeAdapter(Turn)


class TurnInput(TypedDict):
    """The input of a turn."""

    run_id: str
    question: str
    scope: ScopeJson
    mode: str
    profile: dict[str, Any]
    asked_on: NotRequired[str]
    """The day in ISO 8601, UTC; a replay keeps it. Absent where LangGraph itself started the run."""


class WorkCall(TypedDict):
    """A call of a tool, as the research agent's model made it."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str
    """Why it could not be done; empty where it could."""
    result: str
    """What the tool says; empty until it has run, and where it brings sources alone."""
    sources: list[int]
    """The numbers of the sources that it brought."""


class WorkRound(TypedDict):
    """A reply of the research agent's model. Without a call, it has enough."""

    text: str
    calls: list[WorkCall]


class PerQuestion(TypedDict):
    """The fields of one question. `route` resets them all, so that none leaks into the next question."""

    standalone_question: str
    route: Route
    route_reason: str
    language: Language
    """The language to speak."""
    subject: str
    """The thing to describe; empty: the library itself."""
    focus: list[str]
    """Ids of the documents that the conversation is about. They are preferred, never required."""
    outline: list[str]
    """The sections of the document that a model is to summarise; empty for anything else."""
    unclear: bool
    """True where the question points to something that was never named."""
    choices: list[Choice]
    """What a question about the library may mean, where it may mean several things."""
    listed: list[str]
    """Ids of the documents that the reply, or a tool of the research agent, names and does not cite."""
    task: Task
    """What the question asks the documents for."""
    corrected_question: str
    """The standalone question with misspelt words corrected: what is compared with the words of the documents."""
    query: str
    """The query to search for: the standalone question, or the first one of a retry."""
    queries: list[str]
    """Further queries that are searched side by side with it, one for each thing to look up."""
    queries_tried: list[str]
    retries: int
    candidates: list[Candidate]
    sources: list[Source]
    set_aside: list[Source]
    """The last sources, left out because the prompt was too long. Their numbers continue those of `sources`."""
    work: list[WorkRound]
    """The rounds of the research agent, in order."""
    confidence: float
    """Probability that the sources hold the answer, 0-1."""
    level: Level
    missing: list[str]
    """What no source covers: queries of the model that was to write, or words of the question where none was."""
    graded: float
    """The confidence by grade, which an abstention keeps."""
    graded_by: str
    """The model that found the sources lacking, or `local`."""
    lacks: Lack
    """What the model that was to write asked for instead."""
    answerer: str
    """The answerer to ask: `model` (the tier that the profile names), `fallback 1`, `fallback 2` … or `local`.
    Empty: the first of these that exists."""
    answered_by: str
    """The answerer that wrote the answer: a model's name, or `local`."""
    failure: Failure | None
    """Set while another answerer has yet to write the answer."""
    degraded: list[Degradation]
    """The run's fallbacks, in order."""
    outcome: Outcome | None
    """None until there is an answer."""
    outcome_reasons: list[Reason]
    """Why the outcome is not a plain `answered`; empty for small talk and refusals too."""
    framing: Framing
    """The parts of `answer` that claim nothing."""
    answer: str
    citations: list[Citation]
    verification: Verification
    steps: list[ExecutedStep]


class AnswerUpdate(TypedDict):
    """The part of the state that a step writes with an answer, besides what the answer comes to and what it cites."""

    answer: str
    outcome_reasons: list[Reason]
    framing: Framing
    confidence: float
    level: Level
    turns: list[Turn]


class AnswerState(TurnInput, PerQuestion):
    """The whole state. Only `turns` outlives the question."""

    turns: list[Turn]


def list_grounds(turn: Turn) -> dict[str, str]:
    """Return the content hashes of the documents that the turn rests on, by their ids."""
    return turn["rests_on"] if "rests_on" in turn else dict.fromkeys(turn.get("document_ids", ()), "")


def remember(turns: list[Turn], turn: Turn) -> list[Turn]:
    """Return the conversation with `turn` added; it replaces an earlier turn of the same run."""
    return [*(t for t in turns if t["run_id"] != turn["run_id"]), turn][-REMEMBERED_TURNS:]


def read_turns(value: object) -> list[Turn]:
    """Return the turns of a saved state that have today's shape.

    A turn of another shape is dropped: that costs a follow-up its context, while an error would cost the thread.
    """
    turns = []
    for turn in value if isinstance(value, list) else []:
        try:
            turns.append(_TURN.validate_python(turn, strict=True))
        except ValidationError:
            continue
    return turns


def blank_question() -> PerQuestion:
    """Return the per-question fields of a question that just came in."""
    return PerQuestion(
        standalone_question="",
        route="needs_retrieval",
        route_reason="",
        language="en",
        subject="",
        focus=[],
        outline=[],
        unclear=False,
        choices=[],
        listed=[],
        task="look_up",
        corrected_question="",
        query="",
        queries=[],
        queries_tried=[],
        retries=0,
        candidates=[],
        sources=[],
        set_aside=[],
        work=[],
        confidence=0.0,
        level="none",
        missing=[],
        graded=0.0,
        graded_by="",
        lacks="nothing",
        answerer="",
        answered_by="",
        failure=None,
        degraded=[],
        outcome=None,
        outcome_reasons=[],
        framing=Framing(opening=0, closing=0),
        answer="",
        citations=[],
        verification={"status": "skipped", "claims": []},
        steps=[],
    )


def merge_state(turn: Mapping[str, Any], changes: Mapping[str, Any]) -> AnswerState:
    """Make a whole state from a turn's input and the fields known beyond it."""
    return cast(AnswerState, {"turns": [], **turn, **changes})
