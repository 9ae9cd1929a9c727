"""Serves the program that has started this one. A server that runs already is found without importing one."""

import json
from typing import Any

from app.serving.address import find_server
from app.settings import read_settings, reveal
from domain.errors import AskgraphError


async def run_embedded() -> int:
    """Serve until the program closes standard input, or where a server runs in this home, only say so. Returns the exit
    code.

    Standard output gets a line of JSON: `{"url", "key"}` once the service answers, or `{"error": {"code", "message"}}`.
    """
    try:
        settings = read_settings()
        if address := find_server(settings):
            _tell(url=address.url, key=reveal(settings.api_key) or address.token)
            return 0
        # Imports the models and the web framework, which takes seconds: only who becomes the server pays.
        from app.serving.server import serve_owner

        await serve_owner(settings, lambda url, token: _tell(url=url, key=token))
    except AskgraphError as error:
        # Who has started it says so.
        _tell(error={"code": error.code, "message": error.message})
        return 1
    return 0


def _tell(**said: Any) -> None:
    print(json.dumps(said), flush=True)
