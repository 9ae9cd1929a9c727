"""Measures how far two sentences point in opposite directions, with the embedding model.

The embeddings of "A raises B" and "A lowers B" are close, and differ in much the same way whatever A and B are. The
mean difference of a few such pairs is therefore an axis: two sentences about the same matter that lie far apart along
it probably contradict each other. One axis is for more against less, one for yes against no.
"""

import numpy as np

from domain.ports.embedding import Embedder, Vector

_AXES = (
    (
        ("{0} raises {1}.", "{0} lowers {1}."),
        ("{0} promotes {1}.", "{0} hinders {1}."),
        ("With {0}, {1} is higher.", "With {0}, {1} is lower."),
        ("More of {1} was found with {0}.", "Less of {1} was found with {0}."),
    ),
    (
        ("{0} affects {1}.", "{0} does not affect {1}."),
        ("{0} is linked to {1}.", "{0} is not linked to {1}."),
        ("There is evidence that {0} changes {1}.", "There is no evidence that {0} changes {1}."),
    ),
)
_MATTERS = (
    ("the treatment", "the risk of disease"),
    ("training", "the number of accidents"),
    ("the new rule", "the price of houses"),
    ("the protein", "the growth of cells"),
)

SAME_MATTER = 0.4
"""Cosine similarity up to which two sentences speak of different matters and cannot contradict each other."""

_axes: dict[str, Vector] = {}
"""Axes by the name of the embedder."""


async def read_axes(embedder: Embedder) -> Vector:
    """Return the axes as unit rows, shape (2, dimension). They are embedded once per embedder.

    Raises `EmbedderUnavailable`.
    """
    if embedder.name not in _axes:
        pairs = [[[s.format(*m) for s in pair] for pair in axis for m in _MATTERS] for axis in _AXES]
        vectors = iter(await embedder.embed_passages([text for axis in pairs for pair in axis for text in pair]))
        means = np.stack([np.mean([next(vectors) - next(vectors) for _ in axis], axis=0) for axis in pairs])
        _axes[embedder.name] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return _axes[embedder.name]


def find_opposition(one: Vector, other: Vector, axes: Vector) -> float:
    """Return how far two embeddings part along the axes, scaled by how much both speak of the same matter: about 0.02
    for sentences that agree, 0.1 and more for those that contradict each other."""
    matter = max(0.0, float(one @ other) - SAME_MATTER) / (1 - SAME_MATTER)
    return matter * float(np.abs(axes @ (one - other)).sum())
