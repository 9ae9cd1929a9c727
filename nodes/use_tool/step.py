"""use_tool: run the tools that the research agent's model called, side by side, and number what they bring."""

import asyncio
from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from pydantic import ValidationError
from typing_extensions import TypedDict

from domain.documents import Source
from domain.events import ToolCalled, ToolReturned
from domain.execution.spans import Facts
from domain.scope import Scope, ScopeJson
from domain.state import WorkCall, WorkRound
from nodes.context import Context, profile_of, scope_of
from nodes.step import Step
from nodes.use_tool.functions import make_function_tools
from nodes.use_tool.tool import Finding, ResearchTool, ToolProblem
from nodes.use_tool.toolbox import list_tools

_MOST_SOURCES = 120
"""Sources of a run. Chosen: thrice what fits into the prompt of the mode that ships."""


_SPENT = "No more functions from outside can be called for this question."


class UseToolInput(TypedDict):
    """The part of the state that use_tool reads."""

    sources: list[Source]
    work: list[WorkRound]
    listed: list[str]
    scope: ScopeJson
    profile: dict[str, Any]


class UseToolUpdate(TypedDict):
    """The part of the state that use_tool writes."""

    sources: list[Source]
    work: list[WorkRound]
    listed: list[str]


async def use_tool(state: UseToolInput, runtime: Runtime[Context]) -> UseToolUpdate:
    """Run the calls of the last round. What a tool cannot do, it tells the model."""
    *before, last = state["work"]
    profile = profile_of(state)
    functions = make_function_tools(profile)
    tools = {**list_tools(profile), **functions}
    left = profile.functions.calls - sum(call["name"] in functions for each in before for call in each["calls"])
    # Only those in `last` beyond what is left are refused, which the model is told.
    beyond = {call["id"] for call in [call for call in last["calls"] if call["name"] in functions][max(left, 0) :]}
    scope = scope_of(state)
    for call in last["calls"]:
        runtime.stream_writer(
            ToolCalled(type="tool_call", call_id=call["id"], name=call["name"], arguments=call["arguments"])
        )
    results = await asyncio.gather(
        *(
            _run({**call, "problem": _SPENT} if call["id"] in beyond else call, tools, scope, runtime.context)
            for call in last["calls"]
        )
    )
    sources = list(state["sources"])
    calls: list[WorkCall] = []
    for call, finding in zip(last["calls"], results, strict=True):
        numbers = [_place(source, sources) for source in finding.sources]
        brought = list(dict.fromkeys(number for number in numbers if number))
        problem = finding.text if finding.failed else ""
        calls.append({**call, "problem": problem, "result": finding.text, "sources": brought})
        runtime.stream_writer(
            ToolReturned(type="tool_result", call_id=call["id"], name=call["name"], text=finding.text, sources=brought)
        )
    return UseToolUpdate(
        sources=sources,
        work=[*before, {**last, "calls": calls}],
        listed=sorted({*state["listed"], *(document for finding in results for document in finding.listed)}),
    )


async def _run(call: WorkCall, tools: Mapping[str, ResearchTool], scope: Scope, context: Context) -> Finding:
    with context.span(f"execute_tool {call['name']}") as note:
        note(Facts(kind="tool", tool=call["name"], call_id=call["id"], input=call["arguments"]))
        try:
            finding = await _find(call, tools, scope, context)
        except ToolProblem as problem:
            finding = Finding(str(problem), listed=problem.listed, failed=True)
        note(Facts(kind="tool", output=finding.text))
    return finding


async def _find(call: WorkCall, tools: Mapping[str, ResearchTool], scope: Scope, context: Context) -> Finding:
    if call["problem"]:
        raise ToolProblem(call["problem"])
    tool = tools.get(call["name"])
    if tool is None:
        raise ToolProblem(f"There is no tool {call['name']!r}; there are {', '.join(tools)}.")
    try:
        arguments = tool.arguments.model_validate(call["arguments"])
        return await tool.run(arguments, scope, context)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        raise ToolProblem(f"The arguments do not fit: {faults}.") from error


def _place(source: Source, sources: list[Source]) -> int:
    """Return the number of the source that holds this one, which is added where none does; 0 where there is no room."""
    holder = next((known for known in sources if _holds(known, source)), None)
    if holder is not None:
        return holder["number"]
    if len(sources) >= _MOST_SOURCES:
        return 0
    sources.append({**source, "number": len(sources) + 1})
    return len(sources)


def _holds(known: Source, source: Source) -> bool:
    if "outside" in source:
        return known["chunk_id"] == source["chunk_id"]
    # The rows behind a result are the same rows for another query; which they are, the first of them says.
    is_shown = known.get("computed") == source.get("computed") or "\n" not in source.get("computed", "\n")
    return (
        known["document_id"] == source["document_id"]
        and known["page"] == source["page"]
        and is_shown
        and known["start"] <= source["start"]
        and source["end"] <= known["end"]
    )


STEP = Step(
    run=use_tool,
    label="Looking it up",
    knobs=frozenset({"retrieval", "rerank", "functions"}),
    asks="small",
    retry=True,
)
