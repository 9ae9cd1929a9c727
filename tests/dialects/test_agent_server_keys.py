"""Keys and limits, as LangGraph's SDK meets them."""

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

from app.access.keys import make_key
from app.serving.application import make_app
from app.wiring.services import Services
from domain.access import ApiKey
from domain.limits import Limits
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
