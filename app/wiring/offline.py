"""Opens what repeating a recorded run needs: the graph and the local judges. No database, no document, no language
model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from app.adapters.chat.tokens import O200kCounter
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.unit_scorer import LateInteractionUnitScorer
from app.modes import read_modes
from app.settings import Settings
from app.wiring.judges import build_local_judges
from app.workbench.replay.bundle_replay import Parts
from graphs.answer import build_answer_graph


@asynccontextmanager
async def open_offline(settings: Settings) -> AsyncIterator[Parts]:
    """Open the parts. Raises `ConfigurationError` where a file of modes cannot be read."""
    embedder = await asyncio.to_thread(OnnxEmbedder.load)
    try:
        # The scorer is never asked: the tape answers for it.
        scorer = LateInteractionUnitScorer(embedder, cast(Any, None))
        yield Parts(
            build_answer_graph(model_timeout=settings.model_timeout),
            build_local_judges(embedder, scorer),
            O200kCounter(),
            read_modes(settings),
        )
    finally:
        embedder.close()
