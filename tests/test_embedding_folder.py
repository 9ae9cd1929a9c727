"""An embedding model of one's own: a folder that one setting names."""

from pathlib import Path
from typing import Any, cast

import pytest

from app.adapters.embeddings.folder import FolderEmbedder
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.settings import Settings, read_settings
from app.wiring.library import open_embedding_again
from app.wiring.services import open_services
from domain.errors import ConfigurationError
from domain.library.similarity import read_scales
from domain.ports.embedding import Embedder
from tests.asking import ask
from tests.conftest import HANDBOOK, MANUAL
from tests.contracts.embedder import EmbedderContract
from tests.tiny_cross_encoder import write_embedder


class TestContract(EmbedderContract):
    @pytest.fixture
    def model(self, tmp_path: Path) -> Embedder:
        return FolderEmbedder.load(f"folder:{write_embedder(tmp_path / 'words')}")


async def test_a_folder_replaces_the_model_that_ships_and_answers(settings: Settings, tmp_path: Path) -> None:
    async with open_services(settings) as services:
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
    place = f"folder:{write_embedder(tmp_path / 'words', dimension=96)}"
    configured = settings.model_copy(update={"embeddings": place})
    async with open_embedding_again(configured) as (backlog, encoder, _):
        assert await backlog.embed_some(encoder)
    with pytest.raises(ConfigurationError, match="ASKGRAPH_EMBEDDINGS=folder:PATH or package:MODULE of 'words'"):
        async with open_services(settings):
            pass
    async with open_services(configured) as services:
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        assert (services.library.embedder.name, services.library.embedder.dimension) == ("words", 96)
        done = await ask(services)
        assert "36 months" in done["answer"]
        assert done["warnings"] == []
        assert services.library.embedder.scale is not None
        assert services.library.embedder.scale.related == 0.7
        # What the steps judge by reads it, too.
        (read,) = services.make_context().read_cosines([cast(Any, {"dense": 0.7})])
        assert read["dense"] == read_scales()[OnnxEmbedder.name].related


async def test_a_package_is_named_like_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (write_embedder(tmp_path / "some_words") / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    model = FolderEmbedder.load(read_settings(embeddings="package:some_words").embeddings)
    assert model.name == "words"
    model.close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('sha256 = "', 'sha256 = "0'), "SHA-256"),
        (("dimension = 96", "dimension = 95"), "shape"),
        (("query_prefix", "query_prefixx"), "query_prefixx"),
    ],
)
def test_a_folder_that_is_not_what_it_says_is_refused(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    folder = write_embedder(tmp_path / "words")
    description = folder / "model.toml"
    description.write_text(description.read_text().replace(*change))
    with pytest.raises(ConfigurationError, match=says):
        FolderEmbedder.load(f"folder:{folder}")


@pytest.mark.parametrize("place", ["folder:/nowhere", "package:no_such_package_anywhere"])
def test_a_model_that_is_not_there_is_refused(place: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        FolderEmbedder.load(place)
