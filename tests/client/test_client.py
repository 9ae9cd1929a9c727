"""`askgraph.Client` and `AsyncClient` against the service."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import askgraph
from app.access import authentication
from app.access.keys import make_key
from app.serving.application import make_app
from app.wiring.services import Services
from askgraph import AsyncClient, Client, events
from askgraph.connection import http_options, read_target
from domain.people.access import ApiKey
from tests.asking import QUESTION
from tests.http_client import run_app
from tests.protocols.examples import read_example
from tests.wire.serving import serve_app


@asynccontextmanager
async def serve(services: Services, cut: Callable[[bytes], bool] = lambda sent: False) -> AsyncIterator[str]:
    """Serve, and break the connection after a piece of a response for which `cut` returns True."""
    async with run_app(make_app(services)) as running:

        async def break_off(scope: Any, receive: Any, send: Any) -> None:
            async def send_some(message: Any) -> None:
                await send(message)
                if cut(message.get("body", b"")):
                    raise ConnectionAbortedError

            await running(scope, receive, send_some)

        async with serve_app(break_off) as address:
            yield address


async def test_a_program_asks_and_manages_the_library(services: Services, tmp_path: Path) -> None:
    (tmp_path / "manual.md").write_text("# Amsel manual\n\n## Battery\n\nThe battery of the Amsel lasts 9 months.\n")
    handbook = b"# Station handbook\n\n## Warranty\n\nThe Falke has a warranty of 36 months.\n"

    def work(address: str) -> None:
        with Client(address) as client:
            added, refused, other = client.upload(
                ("handbook.md", handbook), ("broken.pdf", b"%PDF-1.7 nothing"), tmp_path / "manual.md",
                metadata={"team": "sales"},
            )  # fmt: skip
            assert added.report is not None
            assert (added.report.status, other.source) == ("added", "manual.md")
            assert refused.report is not None
            assert (refused.report.status, refused.report.code) == ("failed", "unreadable_document")
            found = client.documents(where="team = sales")
            assert {document.title for document in found} == {"Station handbook", "Amsel manual"}

            answer = client.ask(QUESTION, mode="thorough")
            assert "36 months" in answer.answer
            assert (answer.outcome, answer.citations[0].title) == ("answered", "Station handbook")
            assert [claim.verdict for claim in answer.verification.claims] == ["quoted"]
            assert answer.sources
            again = client.ask("And the battery of the Amsel?", thread_id=answer.thread_id)
            assert "9 months" in again.answer
            thread = client.thread(answer.thread_id)
            assert [turn.question for turn in thread.turns] == [QUESTION, "And the battery of the Amsel?"]
            assert client.threads("warranty").threads[0].title == QUESTION

            passages = client.search("warranty of the Falke", limit=1)
            assert [passage.title for passage in passages] == ["Station handbook"]
            assert "36 months" in str(client.document(passages[0].document_id).text)
            assert client.search("warranty", document_ids=[str(other.report and other.report.document_id)])[
                0
            ].title == ("Amsel manual")

            desk = client.save_assistant("desk", filter={"team": "sales"}, instructions="Be kind.", mode="fast")
            assert (desk.name, desk.version, desk.mode, desk.created_by) == ("desk", 1, "fast", "owner")
            assert "36 months" in client.ask(QUESTION, mode="desk").answer
            newer = client.save_assistant("counter", assistant_id=desk.assistant_id, models={})
            assert client.assistants() == [newer]
            assert (newer.version, newer.instructions) == (2, None)
            with pytest.raises(askgraph.InputError, match="no mode 'desk'"):
                client.ask(QUESTION, mode="desk")
            client.delete_assistant(desk.assistant_id)
            assert client.assistants() == []

            assert client.rate(answer.run_id, "down", reason="incomplete").reason == "incomplete"
            assert client.runs(where="mode == thorough").runs[0].run_id == answer.run_id
            assert client.why(answer.run_id)[0].about == "outcome"
            assert client.run(answer.run_id).state == "done"
            assert client.cancel(answer.run_id).state == "done"
            client.delete_document(passages[0].document_id)
            assert [document.title for document in client.documents()] == ["Amsel manual"]
            assert client.delete_thread(answer.thread_id).found == {}

    async with serve(services) as address:
        await asyncio.to_thread(work, address)


async def test_the_example_of_the_page_runs(
    services: Services, library: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with serve(services) as address:
        example = read_example("Python").replace("http://127.0.0.1:8000", address)
        await asyncio.to_thread(exec, example, {})
    said = capsys.readouterr().out
    for part in ("added\n", "answered The Falke", "1 Station handbook None", "quoted The Falke", "Petra Lindqvist"):
        assert part in said
    assert "unknown_document There is no document" in said


async def test_a_stream_goes_on_after_a_cut_connection(services: Services, library: dict[str, str]) -> None:
    cuts: list[bytes] = []

    def cut(sent: bytes) -> bool:
        if b"event: thinking" not in sent or len(cuts) == 3:
            return False
        cuts.append(sent)
        return True

    async with serve(services, cut) as address, AsyncClient(address) as client:
        seen = [event async for event in client.stream(QUESTION)]
        assert len(cuts) == 3
        steps = [event.step for event in seen if isinstance(event, events.Thinking)]
        assert len(steps) == len(set(steps)) == 5
        assert isinstance(seen[0], events.Accepted)
        done = seen[-1]
        assert isinstance(done, events.Done)
        assert "".join(event.token for event in seen if isinstance(event, events.Content)) == done.answer
        # Who comes later hears it all, and who has heard it all hears nothing.
        told_later = [event async for event in client.follow(done.run_id)]
        assert told_later[-1] == done
        assert [event.type for event in told_later] == [event.type for event in seen[1:]]


async def test_errors_have_the_kind_of_the_servers_code(
    services: Services, library: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "TRUSTED_SECONDS", 0)
    async with serve(services) as address:
        async with AsyncClient(address) as client:
            for call, kind, code in (
                (client.ask("How long?", mode="none"), askgraph.InputError, "unknown_mode"),
                (client.ask(""), askgraph.InputError, "question_error"),
                (client.document("nothing"), askgraph.NotFound, "unknown_document"),
                (client.run("nothing"), askgraph.NotFound, "unknown_run"),
                (client.threads(limit=0), askgraph.InputError, "invalid_request"),
                (client.upload(("a.md", b"a"), metadata={"a": None}), askgraph.InputError, "metadata_error"),
            ):
                with pytest.raises(kind) as caught:
                    await call
                assert caught.value.code == code
                assert not caught.value.retryable
        _, key = await make_key(services.keys, ApiKey("", "reader", frozenset({"ask"}), frozenset({"default"})))
        async with AsyncClient(address) as client:
            with pytest.raises(askgraph.Unauthenticated):
                await client.documents()
        async with AsyncClient(address, key=key) as client:
            assert await client.documents()
            with pytest.raises(askgraph.Forbidden):
                await client.why("run")
            with pytest.raises(askgraph.NotFound):
                await client.documents(workspace="theirs")


async def test_an_address_where_no_service_is_is_named() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 502, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<h1>Bad Gateway</h1>"})

    async with serve_app(refuse) as address, AsyncClient(address) as client:
        with pytest.raises(askgraph.Unavailable, match="not as askgraph does") as caught:
            await client.ask(QUESTION)
        assert caught.value.retryable
    async with AsyncClient(address) as client:
        with pytest.raises(askgraph.Unavailable, match=f"connection to {address} failed"):
            await client.ask(QUESTION)


@pytest.mark.parametrize(
    ("address", "kind"), [("http://host:port", askgraph.InputError), ("ask.example.com", askgraph.Unavailable)]
)
def test_what_is_no_address_is_said(address: str, kind: type[askgraph.AskgraphError]) -> None:
    with pytest.raises(kind, match="http://"), Client(address) as client:
        client.documents()


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKGRAPH_SERVER", "https://ask.example.com/")
    monkeypatch.setenv("ASKGRAPH_API_KEY", "ag_1")
    with Client() as client:
        assert client.url == "https://ask.example.com"
    assert read_target(None, None, None) == ("https://ask.example.com/", "ag_1")
    assert read_target("https://other.example.com", "ag_2", None) == ("https://other.example.com", "ag_2")
    assert read_target(None, None, "/home/of/mine") == (None, "ag_1")
    assert http_options("https://ask.example.com", "ag_1", None)["headers"] == {"Authorization": "Bearer ag_1"}


def test_both_clients_have_the_same_methods() -> None:
    def list_methods(client: type) -> dict[str, Any]:
        public = {name: each for name, each in vars(client).items() if not name.startswith("_") and callable(each)}
        return {name: (signature(method).parameters, method.__doc__) for name, method in public.items()}

    assert list_methods(Client) == list_methods(AsyncClient)


async def test_a_client_that_blocks_stops_reading_where_its_program_does(
    services: Services, library: dict[str, str]
) -> None:
    def work(address: str) -> None:
        with Client(address) as client:
            heard = client.stream(QUESTION)
            assert isinstance(next(heard), events.Accepted)
            heard.close()
            assert next(heard, None) is None
            client.workspace = "theirs"
            assert client.documents() == []

    async with serve(services) as address:
        await asyncio.to_thread(work, address)
