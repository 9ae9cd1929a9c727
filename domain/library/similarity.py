"""The scales of embedding models: a cosine of .6 means an answer with one model, and nothing with another."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from domain.profile import Profile

_PATH = Path(__file__).with_name("similarities.toml")


class Scale(BaseModel):
    """Two points of a model's scale, as cosine similarities."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unrelated: float
    related: float

    def map(self, similarity: float, other: "Scale") -> float:
        """Return the similarity at the same place of the other scale, 0-1."""
        place = (similarity - self.unrelated) / (self.related - self.unrelated)
        return round(min(1.0, max(0.0, other.unrelated + place * (other.related - other.unrelated))), 3)


@lru_cache
def read_scales() -> Mapping[str, Scale]:
    """Read the scales that are known, by the model's name."""
    return TypeAdapter(dict[str, Scale]).validate_python(tomllib.loads(_PATH.read_text(encoding="utf-8")))


def find_scale(embedder: str, own: Scale | None = None) -> Scale | None:
    """Return the scale of an embedding model: its own, where it tells it, or the one that is known of its name, as of
    NAME in `openai:NAME@DIMENSIONS`."""
    return own or read_scales().get(_name_model(embedder))


def _name_model(embedder: str) -> str:
    return embedder.removeprefix("openai:").partition("@")[0]


def adapt_limits(profile: Profile, embedder: str, scale: Scale | None = None) -> tuple[Profile, str | None]:
    """Map the profile's limits of similarity to the scale of `embedder`, and say so in a warning; None where they were
    chosen for that model.

    The limits are the threshold of the search and, where the mean similarity of the sources is the confidence, those of
    grade. `scale` is the model's own, where it tells it. A model whose scale is not known leaves them as they are.
    """
    made_for = profile.retrieval.threshold_embedder
    if made_for is None or made_for == _name_model(embedder):
        return profile, None
    threshold = profile.retrieval.similarity_threshold
    own, other = find_scale(made_for), find_scale(embedder, scale)
    if own is None or other is None:
        return profile, (
            f"The mode {profile.name!r} has limits of similarity for {made_for}, and the scale of "
            f"{made_for if own is None else embedder} is not known: they are used as they are with {embedder}. "
            "Set retrieval.similarity_threshold to one that fits."
        )
    retrieval, grade = profile.retrieval, profile.grade
    said = []
    if threshold is not None:
        retrieval = retrieval.model_copy(update={"similarity_threshold": own.map(threshold, other)})
        said.append(f"{threshold:g} became {retrieval.similarity_threshold:g}")
    if grade.formula == "weighted" and profile.rerank.method == "none":
        limits = {name: own.map(getattr(grade, name), other) for name in ("sufficient", "caveat")}
        said += [f"{getattr(grade, name):g} became {limit:g}" for name, limit in limits.items()]
        grade = grade.model_copy(update=limits)
    retrieval = retrieval.model_copy(update={"threshold_embedder": embedder})
    adapted = profile.model_copy(update={"retrieval": retrieval, "grade": grade})
    return adapted, (
        f"The mode {profile.name!r} has limits of similarity for {made_for}; for {embedder}, {', '.join(said)}."
    )
