"""A source as rerank hands it on and a turn as it is remembered, for tests of what is done with them."""

from domain.documents import Source
from domain.state import Route, Turn


def make_source(
    text: str,
    *,
    number: int = 1,
    document_id: str = "d",
    title: str = "Handbook",
    path: str = "",
    heading: str | None = None,
    start: int = 0,
    score: float = 0.9,
    dense: float | None = None,
) -> Source:
    source = Source(
        number=number,
        chunk_id=f"c{number}",
        chunk_index=0,
        document_id=document_id,
        title=title,
        heading_path=[] if heading is None else [heading],
        text=text,
        start=start,
        end=start + len(text),
        page=None,
        lines=[],
        score=score,
        dense=dense,
        lexical=None,
    )
    if path:
        source["source"] = path
    return source


def make_turn(
    question: str = "How many days?",
    *,
    run_id: str = "r",
    route: Route = "needs_retrieval",
    standalone: str = "",
    answer: str = "24 months.",
) -> Turn:
    return Turn(
        run_id=run_id,
        question=question,
        standalone_question=standalone or question,
        route=route,
        answer=answer,
        documents=["Handbook"],
        outcome="answered",
    )
