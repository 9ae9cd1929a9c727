"""Our server compared with LangGraph's own, event by event, by the same client.

What that answers was recorded by `85946e83:tests/protocols/agent_server_recording/record.py` in git.
"""

import json
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client

from app.wiring.services import Services
from tests.asking import QUESTION
from tests.http_client import serve_services
from tests.protocols.agent_server_recording.calls import call, shape

RECORDED = Path(__file__).with_name("agent_server_recording") / "recorded.json"


async def test_every_call_gives_what_the_real_server_gives(services: Services, library: dict[str, str]) -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))["told"]
    given = {"messages": [{"type": "human", "content": QUESTION, "id": "q1"}]}

    async def forget() -> None:
        await services.runs.answers.forget("default")

    async with (
        serve_services(services) as address,
        get_client(url=f"{address}/langgraph", api_key=None) as client,
    ):
        told = await call(client, "standard", given, forget)
    ours = {name: shape(each, name) for name, each in told.items()}
    assert ours.keys() == recorded.keys()
    for name in recorded:
        assert _adapt(name, ours[name]) == _adapt(name, recorded[name]), name


def _adapt(name: str, told: Any) -> Any:
    """Leave out where we differ, and mean to."""
    match name:
        case "graph":  # Other graphs have other edges.
            return [told["nodes"][0], told["nodes"][-1], {key for edge in told["edges"] for key in edge} - CONDITIONAL]
        case "new thread":  # The real server tells less of a thread in which nothing was asked.
            return {key: told[key] for key in told.keys() - {"interrupts", "error", "config"}}
        case "history":  # Steps of ours change fields that the recorded graph leaves to its last step.
            return [_drop(each, "result") | {"values": each["values"]["messages"]} for each in told]
        case "stream events":  # The input stands there as the client has sent it.
            first, begins, *rest = _drop(told, *UNKNOWN, "checkpoint_ns")
            return [first, _drop(begins, "input"), *rest]
        case _ if name.startswith("stream"):
            return _drop(told, *UNKNOWN)
    return told


CONDITIONAL = {"conditional", "data"}

UNKNOWN = ("checkpoint_id", "parent_config", "parent_checkpoint", "chunk_position")
"""What is not known while a run goes on: ids of checkpoints, and which piece of a message is the last."""


def _drop(told: Any, *names: str) -> Any:
    match told:
        case dict():
            return {key: _drop(told[key], *names) for key in told.keys() - set(names)}
        case list():
            return [_drop(each, *names) for each in told]
    return told
