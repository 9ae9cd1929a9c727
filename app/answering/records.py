"""Builds the records of a finished turn: its `done` event, its row in the log of runs, its log line."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.support.metrics import count_run
from domain.documents import Citation
from domain.events import Done, Event, Failed, ToolCalled, ToolReturned
from domain.library.citations import cite_by_marker
from domain.outcome import ABSTENTIONS
from domain.ports.models import ModelUsage
from domain.runs import RunRecord, Shown, StepTime, ToolUse, Withdrawal
from domain.state import (
    AnswerState,
    ExecutedStep,
    Turn,
    TurnInput,
    Usage,
    add_costs,
    blank_question,
    merge_state,
    sum_timings,
)
from graphs.instrumentation import file_usage
from graphs.prompt_versions import find_versions
from nodes.writing.stream import finish_turn

logger = logging.getLogger("askgraph.runs")

STOPPED = "stopped"
"""The `error` of a record whose run was stopped."""


def make_done(
    state: AnswerState, thread_id: str, total_ms: float, trace_url: str | None, *, stopped: bool = False
) -> Done:
    """Make the last event of a run that succeeded or was stopped."""
    usage = _list_usage(state["steps"])
    return Done(
        type="done",
        run_id=state["run_id"],
        thread_id=thread_id,
        answer=state["answer"],
        citations=cite_by_marker(state["answer"], state["citations"], state["sources"]),
        outcome=state["outcome"],
        abstained=state["outcome"] in ABSTENTIONS,
        outcome_reasons=state["outcome_reasons"],
        framing=state["framing"],
        route=state["route"],
        mode=state["mode"],
        standalone_question=state["standalone_question"],
        confidence=state["confidence"],
        verification=state["verification"],
        cached=False,
        stopped=stopped,
        usage=usage,
        cost=_sum_cost(usage),
        timings=_list_timings(state["steps"], total_ms),
        warnings=_list_warnings(state),
        answered_by=state["answered_by"],
        degraded=state["degraded"],
        prompts=find_versions(state["steps"]),
        trace_url=trace_url,
    )


def make_record(
    state: AnswerState,
    thread_id: str,
    started_at: datetime,
    total_ms: float,
    ended: Done | Failed,
    *,
    forked_from: dict[str, Any] | None = None,
    unfinished: Sequence[ModelUsage] = (),
) -> RunRecord:
    """Make the record of a run, however it ended. `unfinished` is the usage of the node that failed or was stopped,
    which was paid for too."""
    # One run, one time: what its asker was told.
    total_ms = ended["timings"]["total"] if ended["type"] == "done" else total_ms
    usage = _list_usage(state["steps"]) + [file_usage("unfinished", used) for used in unfinished]
    return RunRecord(
        run_id=state["run_id"],
        thread_id=thread_id,
        workspace_id=state["scope"]["workspace_id"],
        mode=state["mode"],
        question=state["question"],
        started_at=started_at,
        standalone_question=state["standalone_question"],
        queries=state["queries_tried"],
        scope=state["scope"],
        route=state["route"],
        retries=state["retries"],
        candidates=len(state["candidates"]),
        sources=len(state["sources"]),
        top_score=max((source["score"] for source in state["sources"]), default=None),
        confidence=state["confidence"],
        outcome=None if ended["type"] == "error" else state["outcome"],
        outcome_reasons=[] if ended["type"] == "error" else state["outcome_reasons"],
        verification=state["verification"]["status"],
        cached=ended["type"] == "done" and ended["cached"],
        answer=state["answer"],
        citations=state["citations"],
        usage=usage,
        cost=_sum_cost(usage),
        timings=_list_timings(state["steps"], total_ms),
        warnings=ended["warnings"] if ended["type"] == "done" else _list_warnings(state),
        error=ended["code"] if ended["type"] == "error" else STOPPED if ended["stopped"] else None,
        forked_from=forked_from,
        answered_by=state["answered_by"],
        degraded=state["degraded"],
        prompts=find_versions(state["steps"]),
    )


def publish_record(record: RunRecord) -> None:
    """Count a run that ended, and log one line for it, including small talk, refusals and cached answers."""
    count_run(record)
    fields = {
        "run_id": record.run_id,
        "thread_id": record.thread_id,
        "workspace_id": record.workspace_id,
        "mode": record.mode,
        "route": record.route,
        "outcome": record.outcome,
        "confidence": round(record.confidence, 2),
        "sources": record.sources,
        "retries": record.retries,
        "verification": record.verification,
        "cached": record.cached,
        "answered_by": record.answered_by or None,
        "degraded": ",".join(f"{each['node']}:{each['code']}" for each in record.degraded) or None,
        "total_ms": round(record.timings["total"]),
        "error": record.error,
    }
    logger.info("turn %s", " ".join(f"{name}={value}" for name, value in fields.items()), extra={"fields": fields})


LONGEST_WITHDRAWN = 2_000
"""Characters that are kept of a text that was withdrawn."""


LONGEST_RESULT = 500
"""Characters that are kept of what a tool said; the run's states have the whole."""


def make_shown(events: Sequence[Event], steps: Sequence[ExecutedStep], ended: Done | Failed) -> Shown:
    """Gather what readers saw of a run besides its end."""
    sources: list[Citation] = []
    corrections: list[Withdrawal] = []
    uses: list[ToolUse] = []
    text = ""
    for event in events:
        match event["type"]:
            case "tool_call" | "tool_result":
                note_use(uses, event)
            case "sources":
                sources = event["citations"]
            case "content":
                text += event["token"]
            case "correction":
                corrections.append(Withdrawal(reason=event["reason"], withdrawn=text[:LONGEST_WITHDRAWN]))
                text = event["answer"]
    if ended["type"] == "error" and text:
        corrections.append(Withdrawal(reason=ended["code"], withdrawn=text[:LONGEST_WITHDRAWN]))
    cited = {citation["marker"] for citation in ended["citations"]} if ended["type"] == "done" else set[int]()
    shown = Shown(
        sources=[source for source in sources if source["marker"] not in cited],
        steps=[StepTime(node=step["node"], ms=step["ms"]) for step in steps],
        corrections=corrections,
    )
    if uses:
        shown["tools"] = uses
    return shown


def note_use(uses: list[ToolUse], event: ToolCalled | ToolReturned) -> None:
    """Add a call of a tool, or what it came to. Calls after a result are a round of their own: the research agent's
    model has read it."""
    if event["type"] == "tool_call":
        last = uses[-1] if uses else None
        uses.append(
            ToolUse(
                round=1 if last is None else last["round"] + (last["sources"] is not None),
                call_id=event["call_id"],
                name=event["name"],
                arguments=event["arguments"],
                text="",
                sources=None,
            )
        )
        return
    for use in uses:
        if use["call_id"] == event["call_id"] and use["sources"] is None:
            use["text"], use["sources"] = event["text"][:LONGEST_RESULT], len(event["sources"])


def adopt(turn: TurnInput, turns: list[Turn], done: Done) -> AnswerState:
    """Make the state after a turn that another run has answered. `turns` are the thread's earlier ones."""
    state = merge_state(
        turn,
        {
            **blank_question(),
            "turns": turns,
            "standalone_question": done["standalone_question"],
            "query": done["standalone_question"],
            "route": done["route"],
            "route_reason": "it was answered before",
            "answer": done["answer"],
            "answered_by": done["answered_by"],
            "citations": done["citations"],
            "outcome": done["outcome"],
            "outcome_reasons": done["outcome_reasons"],
            "framing": done["framing"],
            "confidence": done["confidence"],
            "verification": done["verification"],
        },
    )
    state["turns"] = finish_turn(state, done["answer"], done["citations"], done["outcome"])
    return state


def _list_usage(steps: Sequence[ExecutedStep]) -> list[Usage]:
    return [used for step in steps for used in step["usage"]]


def _list_warnings(state: AnswerState) -> list[str]:
    """Return what the reader is told. Several steps that fell back get one note: each cause, and what came of it."""
    warnings = list(dict.fromkeys(warning for step in state["steps"] for warning in step["warnings"]))
    fallen = [warning for warning in warnings if any(warning == each["message"] for each in state["degraded"])]
    if len(fallen) < 2:
        return warnings
    came_of: dict[str, list[str]] = {}
    for warning in fallen:
        consequence, _, cause = warning.partition(": ")
        came_of.setdefault(cause, []).append(f"{consequence}.")
    note = " ".join(f"{cause} {' '.join(consequences)}".strip() for cause, consequences in came_of.items())
    return [*(warning for warning in warnings if warning not in fallen), note]


def _list_timings(steps: Sequence[ExecutedStep], total_ms: float) -> dict[str, float]:
    return {**sum_timings(steps), "total": round(total_ms, 2)}


def _sum_cost(usage: Sequence[Usage]) -> float | None:
    cost = add_costs(used["cost"] for used in usage)
    return None if cost is None else round(cost, 9)
