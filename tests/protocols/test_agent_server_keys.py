"""Keys and limits, as LangGraph's SDK meets them."""

from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

from app.access.keys import make_key
from app.serving.application import make_app
from app.wiring.services import Services
from domain.people.access import ApiKey
from domain.people.limits import Limits
from domain.scope import Scope
from tests.asking import QUESTION
from tests.conftest import HANDBOOK
from tests.http_client import open_client, serve_services


async def test_keys_and_limits_hold(services: Services) -> None:
    wanted = ApiKey("", "sdk", frozenset({"ask"}), limits=Limits(requests_per_minute=2))
    _, token = await make_key(services.keys, wanted)
    async with serve_services(services) as address:
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


async def test_threads_are_found_and_deleted_by_those_who_may(services: Services) -> None:
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
    asked: Any = {"question": QUESTION}
    wanted = ApiKey("", "sales", frozenset({"ask", "debug"}), groups=frozenset({"sales"}))
    _, sales = await make_key(services.keys, wanted)
    _, lead = await make_key(services.keys, ApiKey("", "lead", frozenset({"ask"})))
    async with (
        serve_services(services) as address,
        get_client(url=f"{address}/langgraph", api_key=sales) as limited,
        get_client(url=f"{address}/langgraph", api_key=lead) as unlimited,
    ):
        shared, own = [(await limited.threads.create())["thread_id"] for _ in range(2)]
        await limited.runs.wait(shared, "standard", input=asked)
        await limited.runs.wait(own, "standard", input={"question": "Who handles claims?"})
        assert {each["thread_id"] for each in await limited.threads.search(status="idle")} == {shared, own}
        assert await limited.threads.search(status="busy", limit=1) == []
        first = (await limited.threads.get_history(shared, limit=100))[-1]["checkpoint"]
        await unlimited.runs.wait(shared, "standard", input=asked, checkpoint=first)
        # What the branch was shown everybody may read, whoever asked it.
        assert {each["thread_id"] for each in await limited.threads.search()} == {shared, own}
        assert {each["thread_id"] for each in await unlimited.threads.search()} == {shared, own}

        history = await limited.threads.get_history(own, limit=100)
        ranks = next(state for state in history if state["next"] == ["rerank"])["checkpoint"]
        await limited.threads.update_state(own, {"profile.rerank.keep": 1}, checkpoint=ranks)
        with pytest.raises(APIStatusError, match="debug"):
            await unlimited.threads.update_state(own, {"profile.rerank.keep": 2}, checkpoint=ranks)
        with pytest.raises(APIStatusError, match="Somebody else"):
            await unlimited.threads.delete(own)
        await limited.threads.delete(own)
        assert [each["thread_id"] for each in await limited.threads.search()] == [shared]


async def test_who_changed_a_state_may_delete_their_thread(services: Services, library: dict[str, str]) -> None:
    _, token = await make_key(services.keys, ApiKey("", "sdk", frozenset({"ask", "debug"}), groups=frozenset({"g1"})))
    async with (
        serve_services(services) as address,
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


async def test_messages_that_are_set_are_open_to_those_who_may_read_them(services: Services) -> None:
    tokens = [
        (await make_key(services.keys, ApiKey("", group, frozenset({"ask"}), groups=frozenset({group}))))[1]
        for group in ("board", "staff")
    ]
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK, groups=["board", "staff"])
    uhu = await services.library.ingestion.add("default", "uhu.md", b"# Uhu\n\nThe Uhu team meets on Thursdays.")
    only: Any = {"document_ids": [uhu.document_id]}
    said: Any = {"messages": [{"type": "human", "content": "The vault opens with K7731."}]}
    async with (
        serve_services(services) as address,
        get_client(url=f"{address}/langgraph", api_key=tokens[0]) as board,
        get_client(url=f"{address}/langgraph", api_key=tokens[1]) as staff,
    ):
        begun = (await board.threads.create())["thread_id"]
        await board.threads.update_state(begun, said)
        assert "K7731" in str(await board.threads.search())
        assert "K7731" not in str(await staff.threads.search())
        assert "K7731" not in str(await staff.threads.get_state(begun))
        # Nor does anything remain of an answer whose document is no longer theirs.
        thread_id = (await staff.threads.create())["thread_id"]
        await staff.runs.wait(thread_id, "fast", input={"question": "When does the Uhu team meet?"}, context=only)
        await staff.runs.wait(thread_id, "fast", input={"question": QUESTION})
        await staff.threads.update_state(thread_id, {"messages": [{"type": "human", "content": "Thank you."}]})
        assert "36 months" in str(await staff.threads.get_state(thread_id))
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK, groups=["board"])
        for told in (await staff.threads.get_state(thread_id), await staff.threads.get(thread_id)):
            assert "Thank you." in str(told)
            assert "36 months" not in str(told)


async def test_a_caller_makes_only_so_many_threads_in_which_nothing_is_asked(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.adapters.postgres.conversations.client_threads.MOST_EMPTY", 2)
    async with open_client(make_app(services)) as client:
        keys = [
            {"X-API-Key": (await make_key(services.keys, ApiKey("", name, frozenset({"ask"}))))[1]} for name in "ab"
        ]

        async def make(key: dict[str, str]) -> httpx.Response:
            return await client.post("/langgraph/threads", json={"metadata": {"note": "x" * 19_000}}, headers=key)

        first = await make(keys[0])
        assert [first.status_code, (await make(keys[0])).status_code] == [200, 200]
        assert (await make(keys[0])).status_code == 422
        begun = {"assistant_id": "fast", "input": {"question": "What is it?"}, "if_not_exists": "create"}
        other = "/langgraph/threads/another/runs/wait"
        assert (await client.post(other, json=begun, headers=keys[0])).status_code == 422
        assert (await make(keys[1])).status_code == 200, "another caller has not made any"
        place = f"/langgraph/threads/{first.json()['thread_id']}"
        assert (await client.post(f"{place}/runs/wait", json=begun, headers=keys[0])).status_code == 200
        assert (await make(keys[0])).status_code == 200
        assert (await make(keys[0])).status_code == 422
