"""Keys and limits, as LangGraph's SDK meets them."""

from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

from app.access.keys import make_key
from app.serving.application import make_app
from app.wiring.services import Services
from domain.access import ApiKey
from domain.limits import Limits
from domain.scope import Scope
from tests.asking import QUESTION
from tests.http_client import run_app
from tests.wire.serving import serve_app


async def test_keys_and_limits_hold(services: Services) -> None:
    wanted = ApiKey("", "sdk", frozenset({"ask"}), limits=Limits(requests_per_minute=2))
    _, token = await make_key(services.keys, wanted)
    async with run_app(make_app(services)) as running, serve_app(running) as address:
        async with get_client(url=f"{address}/langgraph", api_key=None) as stranger:
            with pytest.raises(APIStatusError) as unknown:
                await stranger.assistants.search()
            assert unknown.value.status_code == 401
        async with get_client(url=f"{address}/langgraph", api_key=token) as client:
            assert {each["name"] for each in await client.assistants.search()} >= {"fast", "standard", "thorough"}
            await client.assistants.count()
            with pytest.raises(APIStatusError, match="You may send 2 requests a minute") as refused:
                await client.assistants.count()
    assert refused.value.status_code == 429
    assert int(refused.value.response.headers["retry-after"]) <= 60


async def test_who_changed_a_state_may_delete_their_thread(services: Services, library: dict[str, str]) -> None:
    _, token = await make_key(services.keys, ApiKey("", "sdk", frozenset({"ask", "debug"}), groups=frozenset({"g1"})))
    async with (
        run_app(make_app(services)) as running,
        serve_app(running) as address,
        get_client(url=f"{address}/langgraph", api_key=token) as client,
    ):
        thread_id = (await client.threads.create())["thread_id"]
        asked: Any = {"messages": [{"type": "human", "content": QUESTION}]}
        await client.runs.wait(thread_id, "standard", input=asked)
        states = await client.threads.get_history(thread_id, limit=50)
        ranks = next(state for state in states if state["next"] == ["rerank"])
        place = ranks["checkpoint"]["checkpoint_id"]
        await client.threads.update_state(thread_id, {"profile.rerank.keep": 1}, checkpoint_id=place)
        # The branch, which nobody has run, holds what the run was shown.
        thread = await services.runs.client_threads.read("default", thread_id)
        assert thread is not None
        for groups, is_open in ((frozenset({"g1"}), True), (frozenset({"g2"}), False)):
            assert await services.runs.threads.is_open_to(Scope("default", groups=groups), thread.head) is is_open
        await client.threads.delete(thread_id)
        with pytest.raises(APIStatusError, match="no thread"):
            await client.threads.get(thread_id)
