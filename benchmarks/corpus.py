"""Generates a library of any size, reproducibly: words, vectors and questions from one seed.

Words follow the frequencies of open texts inside installed packages. Each topic has words of its own, and codes and
numbers occur that hardly any other chunk has.

The vectors are as close to each other and as hard to search as those of real text. Compared with 37,407 chunks of five
public sets and 200 of their questions, embedded by the model that ships (docs/measurements.md has the
table): cosine of two chunks at random .02 on average, deviation .11 (real: .03, .10); to a chunk's 10th nearest
.63 (.56), 50th .49 (.45), 500th .34 (.30); from a question to its nearest .65 (.65), 50th .35 (.40). A graph of 37,400
finds .986 of a question's 40 nearest (.993): so measured recall is rather too low than too high.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pydoc_data.topics import topics as python_manual

import numpy as np
from numpy.typing import NDArray

from domain.documents import Chunk, ParsedDocument
from domain.ports.documents import ChunkVectors, DocumentContent
from domain.ports.embedding import Vector

SEED = 20261122
DIMENSION = 384
CHUNKS_PER_DOCUMENT = 20
WORDS_PER_CHUNK = 80
"""About 500 characters, which is how ingestion cuts."""
TOKEN_BYTES = 48 * 60
"""Late-interaction vectors of a chunk of that length."""

EXTENTS = (np.arange(DIMENSION, dtype=np.float32) + 4) ** -0.4
"""Extent of vectors in each dimension. Those of real text lie mostly within a quarter of the dimensions."""
TOPICS, SUBJECTS_PER_TOPIC = 50, 20
TOPIC_WORDS = 400
SHARES = (0.6, 0.36, 0.04)
"""Shares of a chunk's words: from the language, from the topic, codes."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one chunk, and the vector that an embedder could have given it."""

    text: str
    embedding: Vector
    source: str
    """The document that it asks about."""


@cache
def _language() -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    """Words and how often each occurs, the most frequent first."""
    texts = [d.read_text("METADATA") or "" for d in sorted(distributions(), key=lambda d: d.name)]
    counts = Counter(
        word for text in (*texts, *python_manual.values()) for word in re.findall(r"[a-z]{1,14}", text.lower())
    )
    words = sorted(counts, key=lambda word: (-counts[word], word))
    weights = np.array([counts[word] for word in words], dtype=np.float64)
    return np.array(words), weights / weights.sum()


def _unit(vectors: Vector) -> Vector:
    unit: Vector = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


def _directions(random: np.random.Generator, *shape: int) -> Vector:
    return _unit(random.standard_normal((*shape, DIMENSION), dtype=np.float32) * EXTENTS)


def _weights(random: np.random.Generator, least: float, most: float, *shape: int) -> Vector:
    weights: Vector = random.uniform(least, most, (*shape, 1)).astype(np.float32)
    return weights


@cache
def _subjects() -> tuple[Vector, NDArray[np.int64]]:
    """The vectors of all subjects, one topic after the other, and each topic's own words by number."""
    random = np.random.default_rng(SEED)
    words = random.integers(200, len(_language()[0]), (TOPICS, TOPIC_WORDS))
    topics = _directions(random, TOPICS)[:, None]
    return _unit(0.9 * topics + 0.5 * _directions(random, TOPICS, SUBJECTS_PER_TOPIC)).reshape(-1, DIMENSION), words


def _place(random: np.random.Generator, size: int) -> tuple[int, Vector]:
    """The topic of a document and the vectors of its chunks: it has a subject, more or less of another one and
    something of its own, and so has each chunk, some far from the document's middle and others near it."""
    subjects, _ = _subjects()
    first, second = random.integers(len(subjects), size=2)
    middle = _unit(
        _weights(random, 0.5, 1) * subjects[first]
        + _weights(random, 0, 1) * subjects[second]
        + 0.4 * _weights(random, 0.3, 1.5) * _directions(random)
    )
    vectors = _unit(
        middle
        + 1.2 * _weights(random, 0.1, 1.4) * _weights(random, 0.1, 1.4, size) * _directions(random, size)
        + 0.9 * _weights(random, 0, 1, size) * subjects[random.integers(len(subjects), size=size)]
    )
    return int(first) // SUBJECTS_PER_TOPIC, vectors


def make_documents(workspace_id: str, chunks: int) -> Iterator[DocumentContent]:
    """Documents of `CHUNKS_PER_DOCUMENT` chunks each, `chunks` in all."""
    for number, first in enumerate(range(0, chunks, CHUNKS_PER_DOCUMENT)):
        yield _make_document(workspace_id, number, min(CHUNKS_PER_DOCUMENT, chunks - first))


def _make_document(workspace_id: str, number: int, size: int) -> DocumentContent:
    random = _generator(workspace_id, number)
    words, frequencies = _language()
    _, topic_words = _subjects()
    topic, vectors = _place(random, size)
    shape = (size, WORDS_PER_CHUNK)
    drawn = np.where(
        random.random(shape) < SHARES[0],
        np.searchsorted(frequencies.cumsum(), random.random(shape)).clip(max=len(words) - 1),
        topic_words[topic, (TOPIC_WORDS * random.random(shape) ** 3).astype(int)],
    )
    texts = words[drawn].astype(object)
    codes = random.random(shape) < SHARES[2]
    texts[codes] = [f"{'abcdefgh'[code % 8]}x-{code}" for code in random.integers(0, 100_000, codes.sum())]
    title = f"{words[topic_words[topic, 0]]} report {number}"
    chunks, start = [], 0
    for index, row in enumerate(texts):
        text = " ".join(row) + "."
        content_hash = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
        chunks.append(Chunk(index, text, start, start + len(text), (title,), content_hash))
        start += len(text) + 2
    text = "\n\n".join(chunk.text for chunk in chunks)
    tokens = random.bytes(TOKEN_BYTES)
    return DocumentContent(
        source=f"{workspace_id}/{number}.txt",
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        parsed=ParsedDocument(title, text, "text/plain", ()),
        chunks=chunks,
        embeddings={
            chunk.content_hash: ChunkVectors(vector, tokens) for chunk, vector in zip(chunks, vectors, strict=True)
        },
    )


def make_questions(workspace_id: str, chunks: int, count: int) -> list[Question]:
    """Questions of 5 to 9 words from a chunk of the workspace, between words that every question has."""
    random = _generator(workspace_id, -1)
    questions = []
    for _ in range(count):
        document = _make_document(
            workspace_id, int(random.integers(max(1, chunks // CHUNKS_PER_DOCUMENT))), CHUNKS_PER_DOCUMENT
        )
        chunk = document.chunks[int(random.integers(len(document.chunks)))]
        words = random.choice(chunk.text.rstrip(".").split(), random.integers(5, 10), replace=False)
        aside = 1.25 * _weights(random, 0.4, 1.6) * _directions(random)
        embedding = _unit(document.embeddings[chunk.content_hash].embedding + aside)
        questions.append(Question(f"What is the {' '.join(words)}?", embedding, document.source))
    return questions


def _generator(workspace_id: str, number: int) -> np.random.Generator:
    name = hashlib.sha256(f"{workspace_id}/{number}".encode()).digest()[:8]
    return np.random.default_rng([SEED, int.from_bytes(name)])
