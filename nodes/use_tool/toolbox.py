"""The tools of the research agent."""

from collections.abc import Mapping

from domain.ports.models import Tool
from domain.profile import Profile
from domain.scope import Scope
from nodes.context import Context
from nodes.use_tool.calculate import CALCULATE
from nodes.use_tool.functions import offer_functions
from nodes.use_tool.reading import LIST_DOCUMENTS, OUTLINE, READ
from nodes.use_tool.searching import FIND, make_search_tool
from nodes.use_tool.tool import ResearchTool


def list_tools(profile: Profile) -> Mapping[str, ResearchTool]:
    """Return the tools for the library, by name."""
    return {tool.name: tool for tool in (make_search_tool(profile), FIND, READ, OUTLINE, LIST_DOCUMENTS, CALCULATE)}


async def offer_tools(profile: Profile, scope: Scope, context: Context) -> list[Tool]:
    """Return what the mode's agent may call, as its model is told: the tools for the library, and functions from
    outside."""
    own = list_tools(profile).values()
    offered = [Tool(tool.name, tool.description, tool.arguments.model_json_schema()) for tool in own]
    return [*offered, *await offer_functions(profile, scope, context)]
