"""Searching the library without answering."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from app.api.dependencies import CallerScope, ModesDep, needs, read_services
from app.api.schema.openapi import answer_with, list_of
from app.api.schema.schemas import WhereQuery
from app.modes import find_mode
from askgraph import models
from domain.documents import Passage
from domain.library.where import Where
from domain.profile import MOST_SOURCES, Profile
from domain.scope import Scope
from domain.text.question import clean_question
from nodes.context import Context
from nodes.sources.search import search

router = APIRouter(prefix="/api/search", tags=["documents"], route_class=needs("ask"))


@router.get("", **answer_with(list_of("passages", models.Passage), "The passages."))
async def search_documents(
    request: Request,
    question: str,
    modes: ModesDep,
    scope: CallerScope,
    document: Annotated[list[str] | None, Query(description="Search this document only; repeatable.")] = None,
    where: WhereQuery = None,
    limit: Annotated[int, Query(ge=1, le=MOST_SOURCES, description="Passages to return.")] = 10,
) -> dict[str, Any]:
    """Find passages of the documents by meaning and by words, best first, without answering. What stands in double
    quotes is found letter by letter, in any case, by document and place."""
    chosen = Scope.within(scope.workspace_id, document, Where.parse_option(where), scope.groups)
    return {"passages": await find_passages(question, chosen, limit, modes, read_services(request).make_context())}


async def find_passages(
    question: str, scope: Scope, limit: int, modes: Mapping[str, Profile], context: Context
) -> list[dict[str, Any]]:
    """Return what retrieve finds for the question in the mode `standard`, or where a text in double quotes stands.
    Raises `QuestionError`."""
    query = clean_question(question)
    passages: Sequence[Passage]
    if len(query) > 2 and query[0] == query[-1] == '"':
        passages = (await context.library.find_text(scope, query[1:-1], limit)).passages
        scores = {passage.chunk_id: 1.0 for passage in passages}
    else:
        candidates = (await search(query, "", scope, find_mode(modes, "standard").retrieval, context))[:limit]
        scores = {found["chunk_id"]: found["score"] for found in candidates}
        passages = await context.library.read_passages(scope, list(scores))
    return [
        {
            "document_id": passage.document_id,
            "title": passage.title,
            "source": passage.source,
            "heading_path": list(passage.heading_path),
            "page": passage.page,
            "start": passage.start,
            "end": passage.end,
            "text": passage.text,
            "score": scores[passage.chunk_id],
        }
        for passage in passages
    ]
