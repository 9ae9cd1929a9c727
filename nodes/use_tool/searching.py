"""The tools that search: `search` by several queries side by side, and `find` letter by letter."""

import asyncio
from collections.abc import Sequence
from functools import partial

from pydantic import BaseModel, Field

from domain.documents import Source
from domain.execution.spans import Facts
from domain.profile import Profile
from domain.scope import Scope
from nodes.context import Context
from nodes.ranking.ranking import rank_candidates
from nodes.sources.neighbours import SPARE, join_passages, widen_sources
from nodes.sources.search import search
from nodes.use_tool.documents import FILTER, filter_scope, find_documents
from nodes.use_tool.tool import Finding, ResearchTool, ToolProblem

_CANDIDATES = 20
"""Candidates that are ranked for a query. Chosen: half of those of a question, for a query looks for one thing."""

_ALONE, _TOGETHER = 5, 3
"""Sources of a query that is alone, and of one among several."""


_FOUND = 8
"""Passages that `find` brings."""


class Where(BaseModel):
    """Where to search."""

    documents: list[str] = Field(
        default_factory=list,
        max_length=20,
        description="Titles, paths or folders of documents, as shown; empty: all.",
    )
    filter: str = Field("", max_length=1000, description=FILTER)

    async def narrow(self, scope: Scope, context: Context) -> Scope:
        """Return the part of the scope that is to be searched. Raises `ToolProblem`."""
        scope = filter_scope(scope, self.filter)
        named = await find_documents(self.documents, scope, context)
        return scope.narrow([document.id for document in named]) if named else scope


class SearchArguments(Where):
    """What to search for, and where."""

    queries: list[str] = Field(
        min_length=1,
        max_length=6,
        description="One query for each thing to find: a few words that name it, in the language of the documents.",
    )


async def _search(profile: Profile, arguments: SearchArguments, scope: Scope, context: Context) -> Finding:
    scope = await arguments.narrow(scope, context)
    keep = _ALONE if len(arguments.queries) == 1 else _TOGETHER
    results = await asyncio.gather(*(_find(query, keep, profile, scope, context) for query in arguments.queries))
    if not any(results):
        raise ToolProblem("Nothing was found.")
    lines = [
        f"{query!r}: {len(sources)} sources" if sources else f"{query!r}: nothing was found"
        for query, sources in zip(arguments.queries, results, strict=True)
    ]
    return Finding("\n".join(lines), [source for sources in results for source in sources])


async def _find(query: str, keep: int, profile: Profile, scope: Scope, context: Context) -> Sequence[Source]:
    """Return the sources of a query."""
    with context.span("search") as note:
        note(Facts(kind="retriever", input=query))
        candidates = (await search(query, "", scope, profile.retrieval, context))[:_CANDIDATES]
        ranked = await rank_candidates(query, candidates, [], profile, scope, context)
        best = [make_source() for _, make_source in ranked[: keep + SPARE]]
        sources = await widen_sources(best, keep, scope, context.library)
        note(Facts(kind="retriever", documents=sources))
    return sources


class FindArguments(Where):
    """What to find, and where."""

    text: str = Field(
        min_length=2, max_length=200, description="The text as it is spelt; upper and lower case are one."
    )


async def _find_text(arguments: FindArguments, scope: Scope, context: Context) -> Finding:
    scope = await arguments.narrow(scope, context)
    found = await context.library.find_text(scope, arguments.text, _FOUND)
    shown = f"; the first {_FOUND} follow" if found.total > _FOUND else ""
    said = f"{arguments.text!r} stands in {found.total} passages{shown}." if found.total else "It stands nowhere."
    return Finding(said, [source for passage in found.passages for source in join_passages([passage])])


FIND = ResearchTool(
    name="find",
    description="Find every place where a text stands letter by letter: a code, a figure, a setting, a name.",
    arguments=FindArguments,
    run=_find_text,
)


def make_search_tool(profile: Profile) -> ResearchTool:
    """Return the tool that searches and ranks as the mode does."""
    return ResearchTool(
        name="search",
        description=(
            "Search the documents by meaning and by words. Brings the best passages for each query, widened to what "
            "they stand in. Codes, names and numbers in a query are matched as they are spelt."
        ),
        arguments=SearchArguments,
        run=partial(_search, profile),
    )
