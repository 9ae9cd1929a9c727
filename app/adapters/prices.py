"""Prices of model calls: the table that ships, extended by a deployment's own."""

import re
import tomllib
from collections.abc import Container
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError

_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
"""Release suffix of a model's name."""

_Dollars = Annotated[float, Field(ge=0)]


class PriceTable(BaseModel):
    """US dollars by model.

    Names match with or without provider and release: `anthropic:NAME-20251001` costs what `NAME` does, unless the table
    has the longer name too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    chat: dict[str, tuple[_Dollars, _Dollars, _Dollars]] = {}
    """Per million tokens: fresh input, cached input, output."""
    embeddings: dict[str, _Dollars] = {}
    """Per million tokens."""
    rerank: dict[str, _Dollars] = {}
    """Per thousand searches."""

    def price(self, model: str, input_tokens: int, cached: int, output_tokens: int) -> float | None:
        """Return the price of a chat model's call in US dollars; None without a price. `input_tokens` includes
        `cached`."""
        name = _find(model, self.chat)
        if name is None:
            return None
        fresh, again, written = self.chat[name]
        return ((input_tokens - cached) * fresh + cached * again + output_tokens * written) / 1e6

    def price_embedding(self, model: str, tokens: int) -> float | None:
        """An embedding call; None where the model has no price."""
        name = _find(model, self.embeddings)
        return None if name is None else tokens * self.embeddings[name] / 1e6

    def price_rerank(self, model: str, searches: float) -> float | None:
        """A reranker's call; None where the model has no price."""
        name = _find(model, self.rerank)
        return None if name is None else searches * self.rerank[name] / 1e3


def _find(model: str, table: Container[str]) -> str | None:
    """The name under which the table has the model."""
    bare = model.rpartition(":")[2]
    return next((name for name in (model, bare, _VERSION.sub("", bare)) if name in table), None)


@cache
def _read_shipped() -> PriceTable:
    return PriceTable.model_validate(tomllib.loads(files("app.adapters").joinpath("prices.toml").read_text("utf-8")))


def read_prices(own: Path | None = None) -> PriceTable:
    """Read the table that ships and add the entries of a deployment's `own` file, which win.

    Raises `ConfigurationError` if that file cannot be read or does not have the form of `prices.toml`.
    """
    shipped = _read_shipped()
    if own is None:
        return shipped
    try:
        added = PriceTable.model_validate(read_toml(own, "price file"))
    except ValidationError as error:
        raise ConfigurationError(f"The price file {own} cannot be used: {list_problems(error)}.") from error
    return PriceTable(
        chat=shipped.chat | added.chat,
        embeddings=shipped.embeddings | added.embeddings,
        rerank=shipped.rerank | added.rerank,
    )
