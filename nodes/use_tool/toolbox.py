"""The tools of the research agent, and what of their results no source shows."""

import json
from collections.abc import Mapping, Sequence

from domain.documents import Source
from domain.ports.models import Tool
from domain.profile import Profile
from domain.scope import Scope
from domain.state import WorkCall, WorkRound
from nodes.context import Context
from nodes.use_tool.calculate import CALCULATE, cut_result, show_computed
from nodes.use_tool.functions import offer_functions
from nodes.use_tool.reading import LIST_DOCUMENTS, OUTLINE, READ
from nodes.use_tool.searching import FIND, make_search_tool
from nodes.use_tool.tool import ResearchTool

_LONGEST = 9000
"""Characters of results beside the sources: about 2,500 tokens. Chosen."""


def list_tools(profile: Profile) -> Mapping[str, ResearchTool]:
    """Return the tools for the library, by name."""
    return {tool.name: tool for tool in (make_search_tool(profile), FIND, READ, OUTLINE, LIST_DOCUMENTS, CALCULATE)}


async def offer_tools(profile: Profile, scope: Scope, context: Context) -> list[Tool]:
    """Return what the mode's agent may call, as its model is told: the tools for the library, and functions from
    outside."""
    own = list_tools(profile).values()
    offered = [Tool(tool.name, tool.description, tool.arguments.model_json_schema()) for tool in own]
    return [*offered, *await offer_functions(profile, scope, context)]


def list_results(work: Sequence[WorkRound], sources: Sequence[Source]) -> list[str]:
    """Return the results that none of the sources shows: what was computed without documents, or from rows that there
    was no room for, lists and outlines. What could not be done is told to the agent alone."""
    shown = {source.get("computed") for source in sources}
    calls = [call for each in work for call in each["calls"] if call["result"] and not call["problem"]]
    told = (_show(call) for call in calls if call["name"] == CALCULATE.name or not call["sources"])
    left = [each for each in dict.fromkeys(told) if each not in shown]
    return [cut_result(each, _LONGEST // len(left)) for each in left]


def _show(call: WorkCall) -> str:
    if call["name"] == CALCULATE.name:
        return show_computed(str(call["arguments"].get("sql")), call["result"])
    return f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}\n{call['result']}"
