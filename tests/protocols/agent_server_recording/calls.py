"""What LangGraph's client asks of a server, and what comes back: of the real server once, of ours in each test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from langgraph_sdk.client import LangGraphClient

from app.api.protocols.agent_server.messages import FIELDS

MODES: list[list[str]] = [
    ["values"],
    ["updates"],
    ["messages"],
    ["messages-tuple"],
    ["custom"],
    ["debug"],
    ["tasks"],
    ["checkpoints"],
    ["events"],
    ["values", "updates", "messages", "messages-tuple", "custom", "debug"],
]


WORDS = {
    "type", "source", "step", "next", "status", "multitask_strategy", "custom", "langgraph_node", "langgraph_step",
    "event", "tags",
}  # fmt: skip
"""Names of values that are compared as they are."""

OURS = {*FIELDS, "citation", "response_metadata", "kwargs"}
"""Names of values that are not the protocol's to say."""

DEPLOYMENT = (
    "__", "ls_", "lc_", "langgraph_api", "langgraph_auth", "langgraph_host", "langgraph_plan", "langgraph_request",
    "langgraph_version", "langsmith", "user_id",
)  # fmt: skip


async def call(
    client: LangGraphClient,
    assistant: str,
    given: dict[str, Any],
    forget: Callable[[], Awaitable[object]] | None = None,
) -> dict[str, Any]:
    """Return what each call gives: streams as lists of names and data, everything else as it is. `forget` is called
    before each run: an answer from a cache takes no steps."""
    [found] = [each for each in await client.assistants.search(limit=100) if each["graph_id"] == assistant]
    told: dict[str, Any] = {
        "assistant": found,
        "graph": await client.assistants.get_graph(found["assistant_id"]),
        "new thread": await client.threads.create(metadata={"team": "support"}),
    }
    thread_id = (await client.threads.create())["thread_id"]
    told["empty state"] = await client.threads.get_state(thread_id)
    for modes in MODES:
        thread = await client.threads.create()
        if forget is not None:
            await forget()
        told[f"stream {' '.join(modes)}"] = await collect(
            client.runs.stream(thread["thread_id"], assistant, input=given, stream_mode=modes)  # type: ignore[arg-type]
        )
    if forget is not None:
        await forget()
    told["wait"] = await client.runs.wait(thread_id, assistant, input=given)
    [told["run"]] = await client.runs.list(thread_id)
    told["thread"] = await client.threads.get(thread_id)
    told["state"] = await client.threads.get_state(thread_id)
    told["history"] = await client.threads.get_history(thread_id, limit=100)
    told["joined"] = await client.runs.join(thread_id, told["run"]["run_id"])
    return told


def shape(told: Any, name: str = "") -> Any:
    """Return the keys and types of what came back, and the values that are words of the protocol. Left out is what
    tells of the deployment or of the model's maker."""
    if name in OURS:
        return "ours"
    match told:
        case dict() if name == "messages/metadata":
            return {"of a message": [shape(each) for each in told.values()]}
        case dict():
            kept = {key: each for key, each in told.items() if not key.startswith(DEPLOYMENT)}
            return {key: shape(kept[key], key) for key in sorted(kept)}
        case [str() as event, data] if name.startswith("stream"):
            return [event, shape(data, event)]
        case list() if told:
            return [shape(each, name) for each in told]
    return told if name in WORDS or told in (None, [], {}) else type(told).__name__


async def collect(stream: AsyncIterator[Any]) -> list[list[Any]]:
    """Return the names and data of a stream."""
    return [[part.event, part.data] async for part in stream]
