"""Embed all documents anew, with another model, while they are searched and changed as before."""

from collections.abc import Callable
from dataclasses import dataclass, field

from domain.ports.embedding import Embedder
from domain.ports.models import ModelUsage
from domain.ports.reindexing import NextIndex
from domain.state import add_costs

BATCH = 256
"""Chunks that are embedded and stored together: what a run that is killed does twice at most."""

Progress = Callable[[str, int, int], None]
"""Called with what is done, how many chunks have their new vector, and how many there are."""


@dataclass(slots=True)
class Reindexed:
    """What a run has done."""

    model: str
    switched: bool = False
    """False where the index was of this model already."""
    chunks: int = 0
    """How many were embedded; what an earlier run had done is not among them."""
    usage: list[ModelUsage] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Of all calls."""
        return sum(usage.input_tokens for usage in self.usage)

    @property
    def cost(self) -> float | None:
        """US dollars of all calls; None where the price of one is not known."""
        return add_costs(usage.cost for usage in self.usage)

    def record(self, usage: ModelUsage) -> None:
        """Add what one call consumed."""
        self.usage.append(usage)


async def reindex(index: NextIndex, embedder: Embedder, progress: Progress | None = None) -> Reindexed:
    """Go over to `embedder`. What a run that was ended has done is not done again.

    Raises `EmbedderUnavailable`, `DatabaseUnavailable` and `ConfigurationError`; the old index is in use until the
    very end.
    """
    done = Reindexed(embedder.name)
    if not await index.prepare():
        return done
    await _embed_missing(index, embedder, done, progress)
    await index.build_indexes()
    # What came meanwhile, until nothing has come.
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
