"""`/api/assistants`: making, changing and choosing assistants over HTTP."""

from typing import Any

import httpx
import pytest

URL = "/api/assistants"
WHOLE = {
    "name": "desk",
    "description": "For the front desk.",
    "mode": "fast",
    "instructions": "Be kind.",
    "document_ids": None,
    "filter": {"path": {"prefix": "hand"}},
    "length": "detailed",
    "language": "de",
    "models": None,
    "metadata": {"owner": "ann"},
    "groups": ["desk", "lawyers"],
}


async def make(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post(URL, json={"name": "desk", **fields})


@pytest.mark.usefixtures("library")
async def test_an_assistant_is_made_changed_chosen_and_deleted(client: httpx.AsyncClient) -> None:
    response = await client.post(URL, json=WHOLE)
    assert response.status_code == 201
    made = response.json()
    assert WHOLE.items() <= made.items()
    assert (made["version"], made["created_by"]) == (1, "owner")
    address = f"{URL}/{made['assistant_id']}"
    changed = (await client.put(address, json={"name": "Desk"})).json()
    assert (changed["version"], changed["mode"], changed["filter"]) == (2, "standard", None)
    assert changed["groups"] == made["groups"]
    assert (await client.get(URL)).json() == {"assistants": [changed]}
    assert (await client.get(f"{address}/versions")).json() == {"assistants": [changed, made]}
    assert (await client.put(f"{address}/version", json={"version": 1})).json() == made
    assert (await client.get(address)).json() == made
    chat = {"question": "How long is the warranty of the Falke?", "mode": "Desk"}
    answer = (await client.post("/api/chat?stream=false", json=chat)).json()
    assert (answer["mode"], "36 months" in answer["answer"]) == ("desk@1", True)
    assert (await client.put(f"{address}/version", json={"version": 3})).status_code == 404
    assert (await client.delete(address)).status_code == 204
    for response in (
        await client.delete(address),
        await client.get(address),
        await client.get(f"{address}/versions"),
        await client.put(address, json=WHOLE),
    ):
        assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_assistant")
    refused = (await client.post("/api/chat?stream=false", json=chat)).json()
    assert refused["error"]["code"] == "unknown_mode"


async def test_what_is_wrong_is_said(client: httpx.AsyncClient) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"name": "fast"}, 409, "'fast' is the name of a mode."),
        ({"name": "a@1"}, 422, "without @ and /"),
        ({"name": "a/b"}, 422, "without @ and /"),
        ({"name": "a\nb"}, 422, "printable"),
        ({"name": "  "}, 422, "at least 1 character"),
        ({"name": "x" * 61}, 422, "at most 60"),
        ({"rerank": {"keep": 3}}, 422, "Extra inputs"),
        ({"budget": {"dollars": 100}}, 422, "Extra inputs"),
        ({"models": {"timeout": 3}}, 422, "Extra inputs"),
        ({"mode": "none"}, 422, "There is no mode 'none'"),
        ({"mode": "disclosures"}, 422, "ships and is off"),
        ({"instructions": "x" * 2001}, 422, "at most 2000"),
        ({"length": "endless"}, 422, "'brief' or 'detailed'"),
        ({"language": "tlh"}, 422, "'auto'"),
        ({"filter": {"tema": "legal"}}, 422, "No document that you may read passes the filter tema=legal."),
        ({"filter": {"team": {"like": "x"}}}, 422, "which does not exist"),
        ({"name": "FAST"}, 409, "'FAST' looks like 'fast'"),
        ({"name": "ｆast"}, 409, "looks like 'fast'"),
        ({"name": "stаndard"}, 409, "looks like 'standard'"),
        ({"name": "5tandard"}, 409, "looks like 'standard'"),
        ({"document_ids": []}, 422, "needs a document"),
        ({"groups": ["a\nb"]}, 422, "no name of a group"),
        ({"document_ids": ["none"]}, 404, "There is no document 'none'"),
        ({"models": {"large": "gpt-9"}}, 422, "No language model is connected here"),
        ({"metadata": {"x": "y" * 20_001}}, 422, "at most 20,000 bytes"),
    ]
    for fields, status, said in cases:
        refused = await make(client, **fields)
        assert (refused.status_code, said in refused.text) == (status, True), refused.text
        assert (await client.get(URL)).json() == {"assistants": []}
