"""Calls of MCP servers that do not behave, over HTTP and of a program."""

import json
import sys

import pytest

from app.adapters import mcp_functions
from app.adapters.mcp_functions import McpFunctions, McpServer
from domain.errors import FunctionError
from domain.scope import DEFAULT_SCOPE
from tests.wire.mcp import TOKEN, serve_on_call

PROGRAM = """
from mcp.server import MCPServer
from mcp.types import CallToolResult, EmbeddedResource, ResourceLink, TextResourceContents
from pydantic import BaseModel
class Place(BaseModel):
    city: str = "Basel"
class Part(BaseModel):
    parts: list["Part"] = []
server = MCPServer("stock")
@server.tool()
def sell(place: Place) -> str:
    return ""
server._tool_manager.get_tool("sell").parameters["$defs"] = [1]
@server.tool()
def weigh(part: Part) -> str:
    return ""
@server.tool(name="reports.find")
def find() -> CallToolResult:
    within = TextResourceContents(uri="file:///q2", text="Q2: 4 million.")
    link = ResourceLink(type="resource_link", name="q3", uri="file:///q3", description="Sales of autumn")
    return CallToolResult(content=[EmbeddedResource(type="resource", resource=within), link])
@server.tool()
def count(article: str, place: Place | None = None) -> list[str]:
    import os
    return [f"{article}: " + "12 " * 50, os.environ.get("SECRET", "no secret"), os.environ["STOCK"]]
server.run()
"""


STRANGE = """
import json, sys
print("ready")
GOOD = {"name": "count", "inputSchema": {"properties": {}}, "outputSchema": {"type": "object", "required": ["n"]}}
LONG = {"inputSchema": {"type": "object"}}
REFS = {f"p{n}": {"$ref": "#/$defs/a"} for n in range(20)}
MANY = {"name": "l2", "inputSchema": {"$defs": {"a": {"description": "x" * 3000}}, "properties": REFS}}
PAGES = {
    None: [{"name": "a", "inputSchema": None, "description": 1}, {"name": "b"}, "c", {"annotations": []}],
    "2": [GOOD | {"annotations": {"readOnlyHint": True, "title": 7}}, LONG | {"name": "l1", "title": "T" * 9000}, MANY],
}
CONTENT = [{"type": "json", "data": 12}, "13", {"type": "text", "text": "14"}]
for line in sys.stdin:
    asked = json.loads(line)
    given = asked.get("params") or {}
    match asked["method"]:
        case "initialize":
            told = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}}
            told["serverInfo"] = {"name": "strange", "version": "1"}
        case "tools/list":
            told = {"tools": PAGES[given.get("cursor")], "nextCursor": "" if "cursor" in given else "2"}
        case "tools/call":
            told = {"structuredContent": {"n": 3}} if given["arguments"] else {"content": CONTENT}
        case _:
            told = None
    said = {"result": told} if told else {"error": {"code": -32601, "message": "no such method"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


async def test_what_is_described_or_said_in_another_form_costs_nothing_else() -> None:
    server = McpServer(command=[sys.executable, "-c", STRANGE], functions=["count"], changing=["a", "b", "l1", "l2"])
    functions = McpFunctions({"it": server})
    found = await functions.list_functions(DEFAULT_SCOPE, ["it.a", "it.b", "it.count", "it.l1", "it.l2"])
    assert found.problems == tuple(f"it.l{n} is not offered: its description is too long." for n in (1, 2))
    assert [(each.name, each.parameters["type"]) for each in found.functions] == [
        ("it.a", "object"), ("it.b", "object"), ("it.count", "object"),
    ]  # fmt: skip
    texts = [(await functions.call(DEFAULT_SCOPE, "it.count", given, 60, 99)).text for given in ({}, {"x": 1})]
    assert texts == ['{"type": "json", "data": 12}\n13\n14', '{"n": 3}']


async def test_a_program_is_started_for_the_call_with_its_own_variables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the service")
    monkeypatch.setenv("STOCK", "of the program")
    monkeypatch.setattr(mcp_functions, "LIST_SECONDS", 60)
    stock = McpServer(
        command=[sys.executable, "-c", PROGRAM],
        variables=["STOCK"],
        changing=["count", "weigh", "sell", "reports.find"],
    )
    functions = McpFunctions({"stock": stock})
    asked = ["stock.count", "stock.weigh", "stock.sell", "stock.remove", "other.count"]
    found = await functions.list_functions(DEFAULT_SCOPE, asked)
    assert [each.name for each in found.functions] == ["stock.count"]
    assert "article" in found.functions[0].parameters["properties"]
    # Some servers of models refuse a schema that refers to parts of itself.
    written = json.dumps(found.functions[0].parameters)
    assert "$ref" not in written
    assert "city" in written
    assert found.problems[0] == "stock.weigh is not offered: its description is too long."
    assert found.problems[1] == "stock.sell is not offered: $defs in its schema is malformed."
    assert len(found.problems) == 4
    result = await functions.call(DEFAULT_SCOPE, "stock.count", {"article": "bolt"}, 60, 10_000)
    assert result.text.startswith("bolt: 12 12")
    assert result.text.endswith("no secret\nof the program")
    read = await functions.call(DEFAULT_SCOPE, "stock.reports.find", {}, 60, 10_000)
    assert read.text == "Q2: 4 million.\nq3: file:///q3: Sales of autumn"
    cut = await functions.call(DEFAULT_SCOPE, "stock.count", {"article": "bolt"}, 60, 20)
    assert cut.text == f"{result.text[:20]}…"


@pytest.mark.parametrize("fault", ["slow", "long", "no json", "refuses"])
async def test_whatever_a_server_answers_is_an_error_in_time(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_IT", TOKEN)
    monkeypatch.setattr(mcp_functions, "LIST_SECONDS", 2)
    async with serve_on_call() as on_call:
        server = McpServer(url=on_call.url, token_variable="TOKEN_OF_IT", functions=["who_is_on_call"])
        functions = McpFunctions({"on-call": server})
        if fault == "slow":  # to answer a call
            await functions.list_functions(DEFAULT_SCOPE, ["on-call.who_is_on_call"])
        on_call.fault = fault  # type: ignore[assignment]
        with pytest.raises(FunctionError) as failed:
            await functions.call(DEFAULT_SCOPE, "on-call.who_is_on_call", {"team": "x"}, 0.5, 100)
        if fault != "slow":
            # Not asked again for each round of each question.
            asked = on_call.requests
            assert (await functions.list_functions(DEFAULT_SCOPE, ["on-call.who_is_on_call"])).problems
            assert on_call.requests == asked
    assert TOKEN not in failed.value.message
    assert on_call.url not in failed.value.message
    assert on_call.calls == []
