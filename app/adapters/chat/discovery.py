"""Finds the servers of language models that listen on this machine."""

import asyncio

import httpx
from pydantic import BaseModel, ValidationError

from app.adapters.fetching import fetch, new_client
from domain.errors import OversizedDocument, UnreadableDocument
from domain.model_names import ModelServer

PORTS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
"""The port on which each listens, as its documentation says."""
_SECONDS = 2.0
_MOST = 1_000_000


class _Model(BaseModel):
    id: str
    owned_by: str | None = None


class _Models(BaseModel):
    data: list[_Model]


def locate(kind: str) -> str:
    """Return the address of a server of this kind on this machine."""
    return f"http://127.0.0.1:{PORTS[kind]}/v1"


async def find_servers() -> list[ModelServer]:
    """Ask each usual port for its list of models. An askgraph, which speaks the same protocol, is none."""
    # Of this machine: no proxy is asked.
    async with new_client(seconds=_SECONDS, trust_env=False) as client:
        found = await asyncio.gather(*(_list_models(client, kind) for kind in PORTS))
    return [server for server in found if server]


async def _list_models(client: httpx.AsyncClient, kind: str) -> ModelServer | None:
    address = locate(kind)
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await fetch(client, f"{address}/models", _MOST)
        models = _Models.model_validate_json(answer.body).data
    except (httpx.HTTPError, TimeoutError, ValidationError, OversizedDocument, UnreadableDocument):
        return None
    if any(model.owned_by == "askgraph" for model in models):
        return None
    return ModelServer(kind, address, [model.id for model in models])
