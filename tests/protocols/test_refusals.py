"""The page says truly what other protocols refuse, and how."""

import json
import re
from typing import Any

import httpx

from app.serving.application import make_app
from app.wiring.services import Services
from tests.http_client import open_client
from tests.protocols.examples import PAGE

SAID = [{"role": "user", "content": "How long?"}]
CHAT = {"model": "standard", "messages": SAID}
RESPONSE = {"model": "standard", "input": "How long?"}
PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
UI = {"id": "chat", "messages": [{"role": "user", "parts": [{"type": "text", "text": "How long?"}]}]}

REQUESTS: list[tuple[str, dict[str, Any] | None]] = [
    ("/v1/chat/completions", CHAT | {"n": 2}),
    ("/v1/chat/completions", CHAT | {"model": "gpt-5"}),
    ("/v1/chat/completions", CHAT | {"messages": [PICTURE]}),
    ("/v1/responses", RESPONSE | {"background": True}),
    ("/v1/embeddings", {"model": "local", "input": "a", "dimensions": 12}),
    ("/api/ui/chat", UI | {"messages": [{"role": "user", "parts": [{"type": "file", "url": "data:"}]}]}),
    ("/mcp", {"method": "prompts/list"}),
    ("/mcp", {"method": "tools/call", "params": {"name": "delete", "arguments": {}}}),
    ("/mcp", {"method": "resources/read", "params": {"uri": "file:///etc/passwd"}}),
    ("/mcp", None),
]
"""Those of the table, in its order."""


async def send(client: httpx.AsyncClient, path: str, body: dict[str, Any] | None) -> tuple[str, str]:
    """Return the status, with the code of a JSON-RPC error, and the message."""
    accept = {"Accept": "application/json, text/event-stream"}
    if body is None:
        refused = await client.get(path, headers=accept)
    else:
        call = {"jsonrpc": "2.0", "id": 1} if path == "/mcp" else {}
        refused = await client.post(path, json=call | body, headers=accept)
    text = refused.text.partition("data: ")[2] or refused.text
    error = json.loads(text)["error"] if "{" in text else {"message": text}
    code = f", {error['code']}" if refused.is_success else ""
    return f"{refused.status_code}{code}", error["message"]


async def test_the_table_of_refusals_is_true(services: Services) -> None:
    table = PAGE.read_text("utf-8").partition("| request | status | message |\n|---|---|---|\n")[2]
    rows = re.findall(r"^\| .+ \| (.+) \| (.+) \|$", table, re.MULTILINE)
    async with open_client(make_app(services)) as client:
        assert [await send(client, path, body) for path, body in REQUESTS] == rows
