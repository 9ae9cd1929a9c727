"""The file `server.json` in the home, by which commands find a server that runs there."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.settings import Settings

NAME = "server.json"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@contextmanager
def announce_server(settings: Settings, host: str, port: int) -> Iterator[None]:
    """Say in the home where this process serves, until it ends. The latest server of a home is the one that is found."""
    file = settings.home / NAME
    # A client connects to one address, not to all of them.
    host = ANY_ADDRESS.get(host, host)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    content = {"url": url, "pid": os.getpid(), "settings": _digest(settings)}
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{NAME}.{os.getpid()}")
    new.write_text(json.dumps(content), "utf-8")
    new.replace(file)
    try:
        yield
    finally:
        if _read(file).get("pid") == os.getpid():
            file.unlink(missing_ok=True)


def find_server(settings: Settings) -> str | None:
    """Return the URL of a server that runs in the home with the same settings, or None if there is none."""
    found = _read(settings.home / NAME)
    if found.get("settings") != _digest(settings):
        return None
    address = urlsplit(found["url"])
    try:
        # A server that was killed has left its file behind.
        os.kill(found["pid"], 0)
        socket.create_connection((address.hostname, address.port), timeout=1).close()
    except OSError:
        return None
    return str(found["url"])


def _read(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        content = json.loads(file.read_text("utf-8"))
        if isinstance(content, dict):
            return content
    return {}


def _digest(settings: Settings) -> str:
    """Return a digest of all settings: with others, such as another database, a command would see something else."""
    values = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        for name, value in settings
        if name != "load_samples"
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
