"""A deployment whose index another model fills: whole questions, over the real protocol."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from pydantic import SecretStr

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres.vectors.backlog import BATCH
from app.answering.admission import PREPARING
from app.settings import Settings
from app.wiring.library import open_embedding_again
from app.wiring.services import Services, open_services
from domain.errors import ConfigurationError, EmbedderReplaced, EmbedderUnavailable
from tests.asking import QUESTION, ask, read_health, with_models
from tests.conftest import HANDBOOK, MANUAL
from tests.contracts.corpus import content_of
from tests.wire.embeddings import EmbeddingsServer, serve_embeddings
from tests.wire.openai import serve_openai

MODEL = "openai:text-embedding-3-small"


def with_embeddings(settings: Settings, server: EmbeddingsServer, model: str = MODEL) -> Settings:
    return settings.model_copy(
        update={
            "embeddings": model,
            "embeddings_base_url": server.base_url,
            "embeddings_api_key": SecretStr("sk-test"),
            "openai_api_key": None,
        }
    )


@asynccontextmanager
async def serve(settings: Settings, embedder: OnnxEmbedder) -> AsyncIterator[tuple[Services, EmbeddingsServer]]:
    """Two documents, embedded by another model."""
    async with (
        serve_embeddings(embedder, api_key="sk-test") as server,
        open_services(with_embeddings(settings, server)) as services,
    ):
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        yield services, server


async def read_embeddings_health(services: Services) -> str:
    return str((await read_health(services))["embeddings"])


@pytest.mark.parametrize("mode", ["fast", "standard", "thorough"])
async def test_a_question_is_embedded_once_and_judged_without_the_provider(
    mode: str, settings: Settings, embedder: OnnxEmbedder
) -> None:
    async with serve(settings, embedder) as (services, server):
        server.requests.clear()
        assert services.admission.preparing == PREPARING  # few that wait for the provider must not hold up all others
        done = await ask(services, mode=mode)
        assert "36 months" in done["answer"]
        assert done["warnings"] == []
        assert done["confidence"] > 0.6
        assert [body["input"] for body in server.requests] == [[QUESTION]]
        assert [(u["node"], u["model"]) for u in done["usage"]] == [("retrieve", "text-embedding-3-small")]
        assert done["cost"] == pytest.approx(done["usage"][0]["input_tokens"] * 0.02e-6)
        unknown = await ask(services, "Who won the football world cup of 1954?", mode=mode)
        assert unknown["citations"] == []


async def test_without_the_provider_questions_are_answered_by_words_and_documents_are_refused(
    settings: Settings, embedder: OnnxEmbedder
) -> None:
    async with serve(settings, embedder) as (services, server):
        server.behaviour.fault = "server_error"
        server.behaviour.retry_after = 0.0001
        done = await ask(services)
        assert "36 months" in done["answer"]
        [warning] = done["warnings"]
        assert "words only" in warning
        assert "had an error (500)" in warning
        assert "had an error (500)" in await read_embeddings_health(services)
        server.behaviour.fault = "no_quota"
        with pytest.raises(EmbedderUnavailable, match="no quota"):
            await services.library.ingestion.add("default", "new.md", b"# New\n\nThe Star is new.\n")
        assert len(await services.library.documents.list("default")) == 2
        server.behaviour.fault = None
        assert (await ask(services, "What is the warranty of the Amsel?"))["warnings"] == []
        assert await read_embeddings_health(services) == "ok"


async def test_a_bad_key_is_said_at_start_and_in_health(
    settings: Settings, embedder: OnnxEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_embeddings(embedder, api_key="another") as server:
        configured = with_embeddings(settings, server)
        async with open_services(configured) as services:
            assert "ASKGRAPH_EMBEDDINGS_API_KEY" in str(await services.checks["embeddings"]())
            assert "ASKGRAPH_EMBEDDINGS_API_KEY" in await read_embeddings_health(services)
        assert [record.levelname for record in caplog.records if record.name == "askgraph.wiring"] == ["ERROR"]
        with pytest.raises(EmbedderUnavailable, match="ASKGRAPH_EMBEDDINGS_API_KEY"):
            async with open_embedding_again(configured):
                pass


async def test_the_key_of_openai_is_shown_to_no_other_server(settings: Settings, embedder: OnnxEmbedder) -> None:
    async with serve_embeddings(embedder, api_key="none") as server:
        configured = with_embeddings(settings, server).model_copy(
            update={"embeddings_api_key": None, "openai_api_key": SecretStr("sk-secret"), "openai_base_url": "http://x"}
        )
        async with open_embedding_again(configured) as (_, _, model):
            assert model.name == f"{MODEL}@1536"


async def test_a_model_without_a_server_is_refused(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        async with open_services(settings.model_copy(update={"embeddings": MODEL})):
            pass


async def test_one_server_for_chat_and_embeddings(settings: Settings) -> None:
    async with (
        serve_openai(api_key="sk-test") as server,
        open_services(with_models(settings, server, embeddings=MODEL)) as services,
    ):
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        done = await ask(services)
    assert "36 months" in done["answer"]
    assert {u["model"] for u in done["usage"]} == {"text-embedding-3-small", "gpt-4.1-mini"}
    assert done["cost"]


async def test_a_service_goes_on_by_words_after_the_choice_and_a_new_one_searches(
    services: Services, library: dict[str, str], settings: Settings, embedder: OnnxEmbedder
) -> None:
    await ask(services)
    assert (await ask(services))["cached"]
    async with serve_embeddings(embedder, api_key="sk-test") as server:
        configured = with_embeddings(settings, server)
        async with open_embedding_again(configured) as (backlog, encoder, _):
            waiting = await backlog.count_all()
            async with open_services(configured) as restarted:
                done = await ask(restarted)
            assert "36 months" in done["answer"]
            assert any("found by words alone" in warning for warning in done["warnings"])
            assert 0 < waiting == await backlog.count_all()
            while await backlog.embed_some(encoder):
                pass
        done = await ask(services)
        assert not done["cached"]
        assert "36 months" in done["answer"]
        assert f"Restart with ASKGRAPH_EMBEDDINGS={MODEL}@1536" in done["warnings"][0]
        assert "Restart with" in await read_embeddings_health(services)
        with pytest.raises(EmbedderReplaced):
            await services.library.ingestion.add("default", "new.md", b"# New\n\nThe Star is new.\n")
        with pytest.raises(ConfigurationError, match="ASKGRAPH_EMBEDDINGS=openai:text-embedding-3-small@1536"):
            async with open_services(settings):
                pass
        async with open_services(configured) as restarted:
            done = await ask(restarted)
            assert not done["cached"]
            assert done["warnings"] == []
            assert "36 months" in done["answer"]


async def test_the_command_goes_on_where_it_was_killed(
    services: Services, settings: Settings, embedder: OnnxEmbedder
) -> None:
    chunks = BATCH + 20
    await services.library.documents.replace("default", content_of("numbers", [f"Number {n}" for n in range(chunks)]))
    async with serve_embeddings(embedder) as server:
        # The word that is tried at the start, a batch, and no more.
        server.behaviour.faults = [None, None, "stall"]
        server.behaviour.stall = 1
        process = await start_embedding(settings, server)
        async with asyncio.timeout(60):
            await server.stalled.wait()
        process.kill()
        await process.wait()
        await give_up_claims(settings)
        process = await start_embedding(settings, server)
        printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    assert f"20 chunks embedded with {MODEL}@1536." in " ".join(printed.decode().split())
    assert f"{MODEL}@1536: 20 of 20" in complaints.decode(), "nobody watches, and yet it is said"
    passages = [text for text in server.served if "Number" in text]
    assert len(set(passages)) == chunks
    assert len(passages) <= chunks + 20, "what was under way is embedded twice at most"


async def give_up_claims(settings: Settings) -> None:
    """Let the claims of the killed process run out."""
    assert settings.database_url
    async with await AsyncConnection.connect(settings.database_url.get_secret_value(), autocommit=True) as connection:
        await connection.execute("UPDATE chunks_to_embed SET claimed_until = '-infinity'")


async def start_embedding(settings: Settings, server: EmbeddingsServer) -> asyncio.subprocess.Process:
    assert settings.database_url
    assert settings.redis_url
    environment = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "REDIS_URL": settings.redis_url.get_secret_value(),
        "ASKGRAPH_EMBEDDINGS": MODEL,
        "ASKGRAPH_EMBEDDINGS_BASE_URL": server.base_url,
    }
    return await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("askgraph"), "ingest", "--embed-again",
        env=environment, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
