"""Runs in files: written, read and repeated without a database."""

from pathlib import Path

import pytest
import zstandard

from app.answering.requests import collect
from app.settings import Settings
from app.wiring.offline import open_offline
from app.wiring.services import Services
from app.workbench.compare.difference import diff
from app.workbench.explain.trace import trace
from app.workbench.replay.bundle import read_bundle, write_bundle
from app.workbench.replay.replay import Replay
from app.workbench.replay.saved_run import SavedRun
from app.workbench.replay.strict_replay import list_differences
from app.workbench.tapes.tape_codec import pack
from domain.errors import StateError
from domain.events import Done
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, serve_models
from tests.conftest import DOCUMENTS

OLD = Path(__file__).with_name("bundle-of-version-1.askgraph")


async def read(services: Services, done: Done) -> SavedRun:
    return await services.make_debugger().read(DEFAULT_SCOPE, done["run_id"])


async def test_a_file_is_repeated_where_neither_the_documents_nor_the_model_are(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, _):
        first = await ask(services, mode="thorough")
        runs = [first, await ask(services, "And of its battery?", thread_id=first["thread_id"])]
        async with services.make_run_manager() as turns:
            branch = Replay("default", run_id=first["run_id"], node="rerank", changes={"profile.rerank.keep": 1})
            ended, _ = await collect(await services.make_replayer(turns).run(branch))
        assert ended["type"] == "done"
        saved = [await read(services, done) for done in [*runs, ended]]
    read_back = [read_bundle(write_bundle(run)) for run in saved]
    assert [run.record for run in read_back] == [run.record for run in saved]
    assert [trace(run) for run in read_back] == [trace(run) for run in saved]
    async with open_offline(Settings()) as (graph, ports):
        for run in read_back:
            assert await list_differences(run, graph, ports) == []
        changed = read_back[0]
        for call in changed.require_tape().calls:
            if call.port.startswith("ChatModel") and call.method == "stream":
                call.reply = [*call.reply, " And more."]
        # The judge is asked about another answer than the recorded one.
        assert "And more." in str(await list_differences(changed, graph, ports))


def test_a_file_of_version_1_is_read() -> None:
    run = read_bundle(OLD.read_bytes())
    assert run.record.question == QUESTION
    traced = trace(run)
    assert traced["path"] == ["route", "retrieve", "rerank", "grade", "generate", "verify"]
    assert "36 months" in traced["answer"]
    assert diff(run, run)["first"] is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no run of askgraph"),
        (b"# Notes", "no run of askgraph"),
        (zstandard.compress(pack({"format": "other"})), "no run of askgraph"),
        (zstandard.compress(pack({"format": "askgraph run", "version": 2})), "this askgraph knows 1"),
        (zstandard.compress(pack({"format": "askgraph run", "version": -5})), "version -5"),
        (zstandard.compress(pack({"format": "askgraph run", "version": True})), "version True"),
        (zstandard.compress(pack({"format": "askgraph run", "version": 1, "record": {}})), "is damaged"),
        (zstandard.compress(b"\0" * 250_000_000), "holds more than"),
    ],
)
def test_what_is_no_such_file_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(StateError, match=says):
        read_bundle(data)
