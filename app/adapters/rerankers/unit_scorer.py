"""Scores units by the token vectors that ingestion stored for late interaction (`late_interaction`).

A unit's tokens are found by its place in the document, so a question costs one run of the model, for itself.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.late_interaction import (
    DIMENSIONS,
    LateInteractionEncoder,
    decompress,
    project,
    read_projection,
)
from domain.documents import embedding_text
from domain.ports.embedding import Vector
from domain.ports.library import TokenChunk, TokenVectors
from domain.ports.unit_scoring import Closeness, Stretch
from domain.scope import Scope
from domain.text.blocks import find_plain

ENCODED = 12
"""Limit of pieces that a question embeds because nothing is stored for their stretch, about 10 ms each."""

PIECE = 600
"""Characters of such a piece, about: as many as a chunk has."""

REMEMBERED = 512
"""Number of stretches whose scores are kept for the second step of a turn that asks for the same."""

_Places = NDArray[np.int64]
_Scores = list[list[Closeness | None]]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of a document, as far as they are known, in order: offsets in the document, and vectors."""

    places: _Places
    vectors: Vector


class LateInteractionUnitScorer:
    """A `UnitScorer` that runs the model on the question, and on stretches without any stored token vectors, as in
    another application's table; of the latter at most `ENCODED` pieces, those of the first stretches."""

    def __init__(self, embedder: OnnxEmbedder, token_vectors: TokenVectors) -> None:
        self._embedder = embedder
        self._token_vectors = token_vectors
        self._encoder = LateInteractionEncoder(embedder)
        self._projection = read_projection()
        self._remembered: OrderedDict[tuple[str, str, Stretch], list[Closeness | None]] = OrderedDict()

    async def score(self, scope: Scope, question: str, stretches: Sequence[Stretch]) -> _Scores:
        # Not kept any longer, because more chunks may have vectors in the next turn.
        known = {
            stretch: scores
            for stretch in stretches
            if (scores := self._remembered.pop((scope.workspace_id, question, stretch), None)) is not None
        }
        if missing := [stretch for stretch in stretches if stretch not in known]:
            for stretch, scores in zip(missing, await self._score(scope, question, missing), strict=True):
                known[stretch] = scores
                if any(scores):
                    self._remembered[scope.workspace_id, question, stretch] = scores
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        return [known[stretch] for stretch in stretches]

    async def _score(self, scope: Scope, question: str, stretches: Sequence[Stretch]) -> _Scores:
        places = [(each.document_id, each.start, each.start + len(each.text)) for each in stretches]
        asked, chunks = await asyncio.gather(
            self._embedder.embed_query_tokens(question), self._token_vectors.read_token_chunks(scope, places)
        )
        located = [self._locate(stretch, chunks) for stretch in stretches]
        if not all(len(tokens.places) for tokens in located):
            await self._embed(stretches, located)
        return _compare(project(asked, self._projection), stretches, located)

    async def _embed(self, stretches: Sequence[Stretch], located: list[_Tokens]) -> None:
        """Run the model on the first stretches of which nothing is located, and put in what that yields."""
        bare = [index for index, tokens in enumerate(located) if not len(tokens.places)]
        pieces = [(index, piece) for index in bare for piece in _cut(stretches[index])][:ENCODED]
        encoded = await self._encoder.encode([_embedded(piece) for _, piece in pieces])
        made = [
            (index, replace(piece, tokens=vectors.tokens, places=vectors.places))
            for (index, piece), vectors in zip(pieces, encoded, strict=True)
        ]
        for index in bare:
            located[index] = self._locate(stretches[index], [piece for owner, piece in made if owner == index])

    def _locate(self, stretch: Stretch, chunks: Sequence[TokenChunk]) -> _Tokens:
        """Return the tokens of those chunks that the stretch is made of."""
        places: list[_Places] = []
        stored: list[bytes] = []
        for chunk in sorted(chunks, key=lambda chunk: chunk.start):
            if _fits(chunk, stretch) and (found := self._find_places(chunk)) is not None:
                inside, at = found
                places.append(at)
                stored.append(chunk.tokens[inside.start * _BYTES : inside.stop * _BYTES])
        if not places:
            return _Tokens(np.zeros(0, dtype=np.int64), np.zeros((0, DIMENSIONS), dtype=np.float32))
        return _Tokens(np.concatenate(places), decompress(b"".join(stored)))

    def _find_places(self, chunk: TokenChunk) -> tuple[range, _Places] | None:
        """Return which tokens stand in the chunk's own text and not in its title or lead, and their offsets in the
        document. None where the vectors were made of another text than would be embedded today."""
        starts = np.frombuffer(chunk.places, "<u2")
        if len(starts) * _BYTES != len(chunk.tokens):
            return None
        kept = find_plain(chunk.text) or [(0, len(chunk.text))]
        begins = np.array([0, *accumulate(end - start for start, end in kept)], dtype=np.int64)
        # The text stands last: what is before it is as long as before another.
        first = len(embedding_text(chunk.title, chunk.heading_path, "x", chunk.lead)) - 1
        at = starts[(own := int(np.searchsorted(starts, first))) :].astype(np.int64) - first
        span = np.searchsorted(begins, at, side="right") - 1
        shifts = np.array([start for start, _ in kept], dtype=np.int64) - begins[:-1]
        return range(own, len(starts)), chunk.start + at + shifts[span]


_BYTES = DIMENSIONS // 2
"""Stored bytes of a token."""


def _embedded(chunk: TokenChunk) -> str:
    return embedding_text(chunk.title, chunk.heading_path, chunk.text, chunk.lead)


def _fits(chunk: TokenChunk, stretch: Stretch) -> bool:
    """Return True where chunk and stretch overlap and have the same text there: the document may have changed."""
    start = max(chunk.start, stretch.start)
    end = min(chunk.start + len(chunk.text), stretch.start + len(stretch.text))
    return (
        chunk.document_id == stretch.document_id
        and start < end
        and chunk.text[start - chunk.start : end - chunk.start]
        == stretch.text[start - stretch.start : end - stretch.start]
    )


def _cut(stretch: Stretch) -> Iterator[TokenChunk]:
    """Cut a stretch before units, into pieces of about `PIECE` characters, as chunks that have no vectors yet."""
    begins = sorted({spans[0][0] for spans in stretch.units})
    start = 0
    while start < len(stretch.text):
        fitting = begins[: bisect_right(begins, start + PIECE)]
        end = fitting[-1] if fitting and fitting[-1] > start else start + PIECE
        end = len(stretch.text) if len(stretch.text) - start <= PIECE else end
        yield TokenChunk(
            stretch.document_id, stretch.start + start, stretch.text[start:end], stretch.place, (), "", b""
        )
        start = end


def _compare(question: Vector, stretches: Sequence[Stretch], located: Sequence[_Tokens]) -> _Scores:
    """Compare the question's token vectors (tokens, DIMENSIONS) with those of each unit."""
    results: _Scores = []
    for stretch, tokens in zip(stretches, located, strict=True):
        closeness: list[Closeness | None] = [None] * len(stretch.units)
        chosen, counts = _choose(stretch, tokens.places)
        filled = np.flatnonzero(counts).tolist()
        if filled and len(question):
            vectors = tokens.vectors[chosen]
            starts = (np.cumsum(counts) - counts)[filled]
            best = np.maximum.reduceat(vectors @ question.T, starts, axis=0).mean(axis=1).clip(0, 1)
            means = np.add.reduceat(vectors, starts, axis=0)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            mean = question.sum(axis=0)
            whole = means @ (mean / np.linalg.norm(mean))
            for index, one, other in zip(filled, best.tolist(), whole.tolist(), strict=True):
                closeness[index] = Closeness(round(one, 4), round(other, 4))
        results.append(closeness)
    return results


def _choose(stretch: Stretch, places: _Places) -> tuple[_Places, _Places]:
    """Return which tokens begin within the units, unit after unit, and how many in each. All units at once, because
    they are many and have few tokens each."""
    spans = [span for unit in stretch.units for span in unit]
    if not spans:
        return np.zeros(0, dtype=np.int64), np.zeros(len(stretch.units), dtype=np.int64)
    first, last = np.searchsorted(places, np.array(spans, dtype=np.int64) + stretch.start).T
    lengths = last - first
    ends = np.cumsum(lengths)
    chosen = np.arange(ends[-1]) + np.repeat(first - (ends - lengths), lengths)
    owners = np.repeat(np.arange(len(stretch.units)), [len(unit) for unit in stretch.units])
    return chosen, np.bincount(owners, weights=lengths, minlength=len(stretch.units)).astype(np.int64)
