"""Shows what happened in a run, step by step: what changed, what was called, and what became of every candidate.

Everything comes from the saved states and, for the calls, titles and snippets, from the tape.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import numpy as np
from langgraph.graph import START
from typing_extensions import TypedDict

from app.workbench.explain.passages import (
    LEGS,
    LeftOut,
    find_source,
    list_left_out,
    list_searches,
    plain,
    read_passages,
)
from app.workbench.explain.why import weigh
from app.workbench.replay.effects import find_difference, reads
from app.workbench.replay.saved_run import SavedRun, SavedStep
from app.workbench.tapes.tape import Call
from domain.documents import Claim, name_place
from domain.history.feedback import Complaint, Feedback, Rating
from domain.profile import Profile, RerankKnobs
from domain.runs import FIRST_TOKEN
from domain.state import Usage, blank_question
from domain.text.blocks import plain_text
from graphs.answer import STEPS

SNIPPET = 200
"""Characters of a candidate's text."""
MAX_TEXT = 20_000
"""Characters of one message of a prompt, or of a reply."""
MAX_CALLS = 100
"""Calls shown of one step."""
_NAMED = 4
"""Items of a list that a change names."""
_LONGEST = 160
"""Characters of a changed value."""
_NO_PASSAGES: Mapping[str, Mapping[str, Any]] = {}


class Change(TypedDict):
    """A field of the state that a step changed."""

    field: str
    """A knob of the profile as `profile.rerank.keep`."""
    text: str
    """What changed, for people."""


class PromptMessage(TypedDict):
    """A message of a prompt, as the model got it."""

    role: str
    """Who speaks: `system`, `user` or `assistant`."""
    content: str
    """What it says."""


class TracedCall(TypedDict):
    """A call of a port, from the tape."""

    port: str
    """The part that was called, as `Library`."""
    method: str
    """What it was called for."""
    summary: str
    """The call in a line."""
    messages: list[PromptMessage]
    """The rendered prompt; empty where no language model was asked."""
    reply: str
    """The language model's reply."""
    thoughts: str
    """What it thought before, as far as its server tells."""
    input_tokens: int
    output_tokens: int
    cost: float | None
    estimated: bool
    """True where it was given up, so that tokens and cost are an estimate."""
    failures: list[str]
    """The failed attempts at it: the provider's HTTP status, where there was one, and what it said."""
    error: str | None
    cut: bool
    """True where the call was abandoned."""


class Leg(TypedDict):
    """What one search says of a candidate."""

    rank: int | None
    """Counts from 1; None where this search did not find it."""
    score: float | None


class TracedCandidate(TypedDict):
    """A candidate, from the searches to the answer."""

    chunk_id: str
    document_id: str
    title: str | None
    """None where no tape tells it."""
    snippet: str | None
    """The beginning of its text; None where no tape tells it."""
    dense: Leg
    lexical: Leg
    fused: Leg
    rerank: Leg
    """The place and the relevance after rerank; without a rank before it."""
    moved: int
    """Places that rerank moved it up; negative: down."""
    source: int | None
    """The number of the source that it became, or became a part of."""
    cited: bool
    """True where the answer cites it."""
    dropped: str | None
    """Why it did not reach the answer."""


class Grade(TypedDict):
    """What grade decided, and by which thresholds."""

    confidence: float
    level: str
    """The confidence in a word: `high`, `medium`, `low` or `none`."""
    sufficient: float
    """From this confidence on it answers."""
    caveat: float
    """From this confidence on it answers with a caveat, when nothing is left to try."""
    missing: list[str]
    text: str
    """The decision in words."""


class TracedStep(TypedDict):
    """One step of a run."""

    number: int
    """Its place in the run, counted from 0."""
    name: str
    """Its name for a replay: `rerank`, or `rerank@2` for the second one."""
    node: str
    checkpoint_id: str
    ms: float | None
    begins: float | None
    """Milliseconds from the run's start, as far as the time tells at which its state was saved."""
    next: list[str]
    """The steps that follow."""
    changed: list[Change]
    warnings: list[str]
    usage: list[Usage]
    prompt: bool
    """True where another system prompt can take the place of the step's own (`profile.prompts`)."""
    calls: list[TracedCall]
    more_calls: int
    """Calls beyond those that are listed."""
    candidates: list[TracedCandidate]
    """For retrieve and rerank: best first; then, for retrieve, what its searches found and it left out."""
    grade: Grade | None
    claims: list[Claim]
    """For verify: the verdict on each claim."""


class Trace(TypedDict):
    """A run, step by step."""

    run_id: str
    thread_id: str
    question: str
    standalone_question: str
    """The question as it was understood and first searched for."""
    mode: str
    started_at: str
    outcome: str | None
    error: str | None
    answer: str
    answered_by: str
    confidence: float
    """That of the answer; where there is none, as grade gave it last."""
    retries: int
    degraded: list[str]
    """The fallbacks in words."""
    rating: Rating | None
    """What a reader said of the answer; None where nobody did."""
    complaint: Complaint | None
    """What the reader found wrong."""
    comment: str
    """What a reader found wrong, and said."""
    first_token_ms: float | None
    """Milliseconds until the answer's first word; None where none was streamed or it was not measured."""
    running: bool
    """True for a run that has not ended: what follows its last step is not known yet, and neither are its calls."""
    cached: bool
    made_by: str | None
    """The run that made an answer from the cache; None where that is not known or not yours to read."""
    cost: float | None
    ms: float | None
    forked_from: dict[str, Any] | None
    """The run and the saved state that it went on from; None for a question."""
    path: list[str]
    """Its steps, in order."""
    steps: list[TracedStep]
    taped: bool
    """True where there is a tape of its calls."""
    untaped: str
    """Why there is no tape, and so neither calls nor snippets."""


def trace(run: SavedRun, feedback: Feedback | None = None) -> Trace:
    """Describe a run, step by step, with what a reader says of it."""
    record, passages = run.record, read_passages(run)
    steps: list[TracedStep] = []
    before: SavedStep | None = None
    for step, name in zip(run.steps, name_steps(run), strict=True):
        steps.append(_trace_step(run, step, before, name, passages))
        before = step
    return Trace(
        run_id=record.run_id,
        thread_id=record.thread_id,
        question=record.question,
        standalone_question=record.standalone_question,
        mode=record.mode,
        started_at=record.started_at.isoformat(),
        outcome=record.outcome,
        error=record.error,
        answer=record.answer,
        answered_by=record.answered_by,
        confidence=record.confidence
        or next((step["grade"]["confidence"] for step in reversed(steps) if step["grade"]), 0.0),
        retries=record.retries,
        degraded=[each["message"] for each in record.degraded],
        rating=None if feedback is None else feedback.rating,
        complaint=None if feedback is None else feedback.reason,
        comment="" if feedback is None else feedback.comment,
        first_token_ms=record.timings.get(FIRST_TOKEN),
        running=run.running,
        cached=record.cached,
        made_by=None if run.origin is None else run.origin.record.run_id,
        cost=record.cost,
        ms=record.timings.get("total"),
        forked_from=record.forked_from,
        path=[step.node for step in run.steps[1:]],
        steps=steps,
        taped=run.tape is not None,
        untaped=run.untaped,
    )


def name_steps(run: SavedRun) -> list[str]:
    """Return the names of the run's steps for a replay: `rerank`, or `rerank@2` for the second one."""
    counts: dict[str, int] = {}
    names = []
    for step in run.steps:
        counts[step.node] = number = counts.get(step.node, 0) + 1
        names.append(f"{step.node}@{number}" if number > 1 else step.node)
    return names


def _trace_step(
    run: SavedRun,
    step: SavedStep,
    before: SavedStep | None,
    name: str,
    passages: Mapping[str, Mapping[str, Any]],
) -> TracedStep:
    """Describe a step, which has this name in the run."""
    values, old = step.values, dict(before.values) if before is not None else {}
    if before is not None and before.node == START:
        # What the thread's last question left is reset, which says nothing of this one.
        old |= blank_question()
    ran = step.ms is not None
    recorded = values["steps"][-1] if ran else None
    calls = [call for call in run.tape.calls if call.step == step.number] if run.tape is not None and before else []
    searched = step.node in ("retrieve", "rerank") and ran
    return TracedStep(
        number=step.number,
        name=name,
        node=step.node,
        checkpoint_id=step.checkpoint_id,
        ms=step.ms,
        begins=_find_begin(run, step),
        next=list(step.next),
        changed=[] if before is None else describe_changes(old, values, passages),
        warnings=recorded["warnings"] if recorded else [],
        usage=recorded["usage"] if recorded else [],
        prompt=step.node in STEPS and reads(step.node, f"profile.prompts.{step.node}"),
        calls=[_describe_call(call) for call in calls[:MAX_CALLS]],
        more_calls=max(0, len(calls) - MAX_CALLS),
        candidates=_trace_candidates(run, step, old, passages) if searched else [],
        grade=_describe_grade(values) if step.node == "grade" else None,
        claims=values["verification"]["claims"] if step.node == "verify" else [],
    )


def _find_begin(run: SavedRun, step: SavedStep) -> float | None:
    if step.ms is None or not step.created_at:
        return None
    saved = (datetime.fromisoformat(step.created_at) - run.record.started_at).total_seconds() * 1000
    total = run.record.timings.get("total", saved)
    return round(max(0.0, min(saved, total) - step.ms), 2)


def _describe_grade(values: Mapping[str, Any]) -> Grade:
    knobs = Profile.model_validate(values["profile"]).grade
    return Grade(
        confidence=values["confidence"],
        level=values["level"],
        sufficient=knobs.sufficient,
        caveat=knobs.caveat,
        missing=values["missing"],
        text=weigh(values),
    )


def describe_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], passages: Mapping[str, Mapping[str, Any]] = _NO_PASSAGES
) -> list[Change]:
    """Describe how two states differ, for people, a line a field. Candidates are named by their passages."""
    described = []
    for field in find_difference(before, after):
        if field == "steps":
            continue
        old, new = (_look_up(values, field) for values in (before, after))
        described.append(Change(field=field, text=_describe_change(old, new, passages)))
    return described


def _look_up(values: Mapping[str, Any], field: str) -> Any:
    found: Any = values
    for part in field.split(".") if field.startswith("profile.") else [field]:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _describe_change(old: Any, new: Any, passages: Mapping[str, Mapping[str, Any]]) -> str:
    if isinstance(new, list) and isinstance(old, list | None):
        return _describe_list([_name(each, passages) for each in old or []], [_name(each, passages) for each in new])
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        parts = [f"{key} {_show(new.get(key))}" for key in new if old.get(key) != new.get(key)]
        return "; ".join(parts)
    return _show(new) if old in (None, "", 0, 0.0) else f"{_show(old)} → {_show(new)}"


def _describe_list(was: list[str], now: list[str]) -> str:
    added = [name for name in now if name not in was]
    gone = [name for name in was if name not in now]
    size = str(len(now)) if len(was) == len(now) else f"{len(was)} → {len(now)}"
    parts = []
    if added:
        parts.append(f"new: {_enumerate(added)}")
    if gone:
        parts.append(f"gone: {_enumerate(gone)}")
    if not parts and was != now:
        parts.append(f"in another order: {_enumerate(now)}")
    return f"{size}; {'; '.join(parts) or 'with other details'}" if now else f"{size}, none left"


def _name(each: Any, passages: Mapping[str, Mapping[str, Any]]) -> str:
    if not isinstance(each, Mapping):
        return _show(each)
    each = passages.get(each.get("chunk_id", ""), each) if "title" not in each else each
    if "title" in each:
        return name_place(each["title"], each.get("heading_path", []))
    if "chunk_id" in each:
        return "a passage whose title is not on the tape"
    if "calls" in each:
        return "; ".join(_show_use(call) for call in each["calls"]) or _show(each["text"] or "no tool is needed")
    return _show(next((each[key] for key in ("question", "text", "code", "label") if each.get(key)), each))


def _show_use(call: Mapping[str, Any]) -> str:
    """Show one use of a tool, as the research agent made it: `calculate(sql: SELECT 1) → 1`."""
    came = call["problem"] or call["result"] or ", ".join(f"source {number}" for number in call["sources"])
    given = ", ".join(f"{name}: {_show(value)}" for name, value in call["arguments"].items())
    return f"{call['name']}({given})" + (f" → {_show(came)}" if came else "")


def _enumerate(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(f"“{name}”" for name in names[:_NAMED]) + more


def _show(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        value = "; ".join(f"{key} {_show(part)}" for key, part in value.items())
    elif isinstance(value, list | tuple):
        value = ", ".join(_name(part, _NO_PASSAGES) for part in value)
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _describe_call(call: Call) -> TracedCall:
    is_model = call.port.startswith("ChatModel")
    messages = [plain(message) for message in call.request.get("messages", [])] if is_model else []
    reply = _cut("".join(call.reply) if call.method == "stream" else str(call.reply)) if is_model else ""
    costs = [used.cost for used in call.usage]
    return TracedCall(
        port=call.port,
        method=call.method,
        summary=_sum_up(call),
        messages=[PromptMessage(role=each["role"], content=_cut(each["content"])) for each in messages],
        reply=reply if call.reply is not None else "",
        thoughts=_cut(call.thoughts),
        input_tokens=sum(used.input_tokens for used in call.usage),
        output_tokens=sum(used.output_tokens for used in call.usage),
        cost=None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None),
        estimated=any(used.estimated for used in call.usage),
        failures=[f"{failed.status or 'no status'}: {_cut(failed.message)}" for failed in call.failures],
        error=None if call.error is None else f"{call.error[0]}: {call.error[1]}",
        cut=call.cut,
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT:,} more characters)"


def _sum_up(call: Call) -> str:
    """Say in a line what was asked and what came back."""
    keys = ("query", "question", "text", "words", "names", "sql")
    asked = next((str(call.request[key]) for key in keys if call.request.get(key)), "")
    said = f"“{_show(asked)}” " if asked else ""
    if call.error is not None:
        return f"{said}failed with {call.error[0]}"
    if call.cut:
        return f"{said}was cut off"
    reply = call.reply
    if isinstance(reply, np.ndarray):
        back = f"a vector of {reply.shape[-1]}"
    elif isinstance(reply, list) and reply and all(isinstance(each, int | float) for each in reply):
        back = ", ".join(f"{each:.2f}" for each in reply[:8]) + (" …" if len(reply) > 8 else "")
    elif isinstance(reply, list) and call.method != "stream":
        back = f"{len(reply)} found" if call.method.startswith(("search", "read")) else f"{len(reply)} results"
    elif isinstance(reply, Mapping) and "columns" in reply:
        back = _show("; ".join(", ".join(map(str, row)) for row in (reply["columns"], *reply["rows"])))
    else:
        back = _show("".join(reply) if isinstance(reply, list) else reply)
    return f"{said}→ {back}"


def _trace_candidates(
    run: SavedRun, step: SavedStep, before: Mapping[str, Any], passages: Mapping[str, Mapping[str, Any]]
) -> list[TracedCandidate]:
    values, final = step.values, run.final
    candidates = values["candidates"]
    reranked = step.node == "rerank"
    found = before["candidates"] if reranked else candidates
    places = {each["chunk_id"]: place for place, each in enumerate(found, 1)}
    titles = {source["document_id"]: source["title"] for each in run.steps for source in each.values["sources"]}
    # rerank is the step after retrieve.
    searches = list_searches(run, step.number - reranked)
    ranks = {name: _rank_leg(searches, candidates, name) for name in LEGS}
    cited = {citation["marker"] for citation in final["citations"]}
    profile = Profile.model_validate(values["profile"])
    last = min((source["score"] for source in values["sources"]), default=None)
    nothing = Leg(rank=None, score=None)

    def describe(
        each: Mapping[str, Any],
        fused: Leg,
        rerank: Leg,
        *,
        moved: int = 0,
        source: int | None = None,
        cited: bool = False,
        dropped: str | None = None,
    ) -> TracedCandidate:
        chunk_id = each["chunk_id"]
        passage = passages.get(chunk_id)
        return TracedCandidate(
            chunk_id=chunk_id,
            document_id=each["document_id"],
            title=name_place(passage["title"], passage["heading_path"]) if passage else titles.get(each["document_id"]),
            snippet=" ".join(plain_text(passage["text"]).split())[:SNIPPET] if passage else None,
            dense=Leg(rank=ranks["dense"].get(chunk_id), score=each["dense"]),
            lexical=Leg(rank=ranks["lexical"].get(chunk_id), score=each["lexical"]),
            fused=fused,
            rerank=rerank,
            moved=moved,
            source=source,
            cited=cited,
            dropped=dropped,
        )

    traced = []
    for place, each in enumerate(candidates, 1):
        chunk_id = each["chunk_id"]
        passage, fused = passages.get(chunk_id), places.get(chunk_id)
        number = find_source(values["sources"], each, passage) if reranked else None
        # The sources that were answered from may be those of another attempt.
        reached = find_source(final["sources"], each, passage)
        # Of a run that stopped before an answer it is not known what it would have cited.
        is_cited = reached is not None and (reached in cited or not final["answer"])
        # Without its passage it is not known whether it stands in a source that was widened over it.
        is_known = passage is not None or number is not None or place > profile.rerank.keep
        traced.append(
            describe(
                each,
                Leg(rank=fused, score=each["score"]),
                Leg(rank=place if reranked else None, score=each["relevance"]),
                moved=fused - place if reranked and fused is not None else 0,
                source=number,
                cited=reached in cited and (number is not None or not reranked),
                dropped=_say_why_dropped(each, place, number, profile.rerank, last, is_cited=is_cited)
                if reranked and is_known
                else None,
            )
        )
    left_out = [] if reranked else list_left_out(run, step)
    return [*traced, *(describe(each, nothing, nothing, dropped=_say_why_left_out(each, profile)) for each in left_out)]


def _say_why_left_out(left_out: LeftOut, profile: Profile) -> str:
    knobs = profile.retrieval
    if left_out["missed"] is None:
        return f"was not among the best {knobs.candidates} of both searches (profile.retrieval.candidates)"
    return (
        f"similarity {left_out['dense']:.2f} is {left_out['missed']:.2f} below "
        f"profile.retrieval.similarity_threshold, {knobs.similarity_threshold}"
    )


def _say_why_dropped(
    candidate: Mapping[str, Any],
    place: int,
    number: int | None,
    knobs: RerankKnobs,
    last: float | None,
    *,
    is_cited: bool,
) -> str | None:
    if number is not None:
        return None if is_cited else f"was read as source {number}, and nothing of it was cited"
    relevance = candidate["relevance"]
    if relevance is None:
        return "was not scored: its text was not there any more"
    said = f"came {_ordinal(place)} where {knobs.keep} are kept (profile.rerank.keep)"
    missed = f", {last - relevance:.2f} below the last that was" if last is not None and last >= relevance else ""
    return f"{said}: relevance {relevance:.2f}{missed}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _rank_leg(
    searches: Sequence[Call], candidates: Sequence[Mapping[str, Any]], leg: Literal["dense", "lexical"]
) -> dict[str, int]:
    """Return the rank in one search by chunk: the best of the step's searches; without a tape, that by score."""
    calls = [call for call in searches if call.method == f"search_{leg}"]
    if calls:
        ranks: dict[str, int] = {}
        for call in calls:
            for rank, match in enumerate(map(plain, call.reply or []), 1):
                ranks[match["chunk_id"]] = min(rank, ranks.get(match["chunk_id"], rank))
        return ranks
    scored = sorted((each for each in candidates if each[leg]), key=lambda each: -float(each[leg]))
    return {each["chunk_id"]: rank for rank, each in enumerate(scored, 1)}
