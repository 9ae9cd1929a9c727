"""Opens what repeating a recorded run needs: the graph and the local judges. No database, no document, no language
model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from app.adapters.chat.tokens import O200kCounter
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.unit_scorer import LateInteractionUnitScorer
from app.settings import Settings
from app.wiring.judges import build_local_judges
from graphs.answer import AnswerGraph, build_answer_graph
from nodes.context import Context


@asynccontextmanager
async def open_offline(settings: Settings) -> AsyncIterator[tuple[AnswerGraph, Context]]:
    """Open the graph, and a context that has no library: what is not on a tape is not there."""
    embedder = await asyncio.to_thread(OnnxEmbedder.load)
    nothing = cast(Any, None)
    try:
        # The scorer is never asked: the tape answers for it.
        judges = build_local_judges(embedder, LateInteractionUnitScorer(embedder, nothing))
        context = Context(library=nothing, embedder=embedder, judges=judges, tokens=O200kCounter())
        yield build_answer_graph(model_timeout=settings.model_timeout), context
    finally:
        embedder.close()
