from pathlib import Path

import pytest

from app.adapters.prices import read_prices
from app.settings import read_settings
from domain.errors import ConfigurationError


def test_every_default_model_has_a_price() -> None:
    settings = read_settings()
    table = read_prices()
    for model in (settings.model_small, settings.model_large, settings.model_judge):
        assert table.price(model, 1000, 0, 100)


def test_a_cached_token_costs_less_than_a_fresh_one() -> None:
    table = read_prices()
    assert table.price("gpt-4.1", 1_000_000, 0, 0) == pytest.approx(2.0)
    assert table.price("gpt-4.1", 1_000_000, 1_000_000, 0) == pytest.approx(0.5)
    assert table.price("gpt-4.1", 0, 0, 1_000_000) == pytest.approx(8.0)


@pytest.mark.parametrize(
    "name",
    [
        "claude-haiku-4-5",
        "claude-haiku-4-5-20251001",
        "anthropic:claude-haiku-4-5",
        "anthropic:claude-haiku-4-5-latest",
    ],
)
def test_a_model_costs_the_same_under_its_longer_names(name: str) -> None:
    assert read_prices().price(name, 1_000_000, 0, 0) == pytest.approx(1.0)


def test_what_is_not_listed_has_no_price() -> None:
    table = read_prices()
    assert table.price("llama-at-home", 10, 0, 10) is None
    assert table.price_embedding("nomic-embed-text", 10) is None
    assert table.price_rerank("bge-reranker", 1) is None


def test_embeddings_and_rerankers_are_priced_in_their_own_units() -> None:
    table = read_prices()
    assert table.price_embedding("text-embedding-3-small", 1_000_000) == pytest.approx(0.02)
    assert table.price_rerank("rerank-v3.5", 1000) == pytest.approx(2.0)


def test_a_file_of_ones_own_adds_and_replaces(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text('[chat]\n"llama-at-home" = [0, 0, 0]\n"gpt-4.1" = [1, 1, 1]\n"qwen3:8b" = [2, 2, 2]\n')
    table = read_prices(own)
    assert table.price("llama-at-home", 10, 0, 10) == 0
    assert table.price("gpt-4.1", 1_000_000, 0, 0) == pytest.approx(1.0)
    assert table.price("qwen3:8b", 1_000_000, 0, 0) == pytest.approx(2.0)
    assert table.price("gpt-4.1-mini", 1_000_000, 0, 0) == pytest.approx(0.4)
    assert table.price_rerank("rerank-v3.5", 1000) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[chat]\n"gpt-9" = [1, 2]\n', "chat.gpt-9"),
        ('[chat]\n"gpt-9" = [1, 2, -3]\n', "chat.gpt-9"),
        ("[models]\n", "models"),
        ("not toml", "cannot be used: "),
    ],
)
def test_a_file_that_is_no_price_table_is_refused_with_what_is_wrong(tmp_path: Path, text: str, named: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(ConfigurationError, match=named):
        read_prices(own)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be used: .*No such file"):
        read_prices(tmp_path / "none.toml")
