"""The tools of the research agent."""

from collections.abc import Mapping

from domain.profile import Profile
from nodes.use_tool.calculate import CALCULATE
from nodes.use_tool.reading import LIST_DOCUMENTS, OUTLINE, READ
from nodes.use_tool.searching import make_search_tool
from nodes.use_tool.tool import ResearchTool


def list_tools(profile: Profile) -> Mapping[str, ResearchTool]:
    """Return the tools of the mode, by name."""
    return {tool.name: tool for tool in (make_search_tool(profile), READ, OUTLINE, LIST_DOCUMENTS, CALCULATE)}
