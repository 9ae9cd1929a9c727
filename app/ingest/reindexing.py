"""Embeds all documents again with another model, while they are searched and changed as before."""

from collections.abc import Callable
from dataclasses import dataclass, field

from domain.ports.embedding import Embedder
from domain.ports.models import FailedAttempt, ModelUsage
from domain.ports.reindexing import NextIndex
from domain.state import add_costs

BATCH = 256
"""Chunks embedded and stored together: the most that a killed run repeats."""

Progress = Callable[[str, int, int], None]
"""Called with the model's name, the number of chunks with a new vector, and the number of chunks."""


@dataclass(slots=True)
class Reindexed:
    """Result of a reindexing run."""

    model: str
    switched: bool = False
    """False if the index was already of this model."""
    chunks: int = 0
    """Chunks embedded by this run, without those of earlier runs."""
    usage: list[ModelUsage] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Input tokens of all calls."""
        return sum(usage.input_tokens for usage in self.usage)

    @property
    def cost(self) -> float | None:
        """Cost of all calls in US dollars; None if the price of one is unknown."""
        return add_costs(usage.cost for usage in self.usage)

    def record(self, usage: ModelUsage) -> None:
        """Add the usage of one call."""
        self.usage.append(usage)

    def record_failure(self, failure: FailedAttempt) -> None:
        """Ignore what was repeated."""


async def reindex(index: NextIndex, embedder: Embedder, progress: Progress | None = None) -> Reindexed:
    """Replace the index in use by one of `embedder`. Work of an interrupted run is not repeated.

    The old index is in use until the very end. Raises `EmbedderUnavailable`, `DatabaseUnavailable` and
    `ConfigurationError`.
    """
    done = Reindexed(embedder.name)
    if not await index.prepare():
        return done
    await _embed_missing(index, embedder, done, progress)
    await index.build_indexes()
    # Repeat for chunks that came meanwhile, until there are none.
    while not await index.switch():
        await _embed_missing(index, embedder, done, progress)
    await index.check_keys()
    done.switched = True
    return done


async def _embed_missing(index: NextIndex, embedder: Embedder, done: Reindexed, progress: Progress | None) -> None:
    ready, total = await index.count()
    async for batch in index.read_missing(BATCH):
        texts = list(dict.fromkeys(batch.values()))
        vectors = dict(zip(texts, await embedder.embed_passages(texts, done), strict=True))
        await index.keep({chunk_id: vectors[text] for chunk_id, text in batch.items()})
        done.chunks += len(batch)
        ready += len(batch)
        if progress is not None:
            progress(embedder.name, min(ready, total), total)
