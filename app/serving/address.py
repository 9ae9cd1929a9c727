"""The address file of a running server, by which commands of the same home folder find it."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.settings import Settings
from app.support.private_files import write_private

FILE = "server.json"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a running server of this machine."""

    url: str
    """For example `http://127.0.0.1:8000`."""
    token: str
    """Identifies the owner of the machine to this server, as long as it runs."""


@contextmanager
def publish_address(settings: Settings, host: str, port: int, token: str) -> Iterator[None]:
    """Keep the address in `<home>/server.json` as `{"url", "token", "pid", "settings"}` until the end of the block.

    Only the owner may read the file. Where another server of the home still runs afterwards, the file is that one's
    again.
    """
    file = settings.home / FILE
    before = file.read_text() if _is_alive(_read(file).get("pid")) else None
    address = {
        "url": format_url(_reachable(host), port),
        "token": token,
        "pid": os.getpid(),
        "settings": _digest_each(settings),
    }
    write_private(file, json.dumps(address))
    try:
        yield
    finally:
        # Another server of the same home may have replaced it.
        if _read(file).get("pid") == os.getpid():
            if before is None:
                file.unlink(missing_ok=True)
            else:
                write_private(file, before)


def find_server(settings: Settings) -> Address | None:
    """Return the address of the running server of a home folder; None if there is none.

    A server with another database is ignored, and one that differs in a setting that was given here, such as a model:
    what was not given is the server's. So is the file of a server that was killed.
    """
    address = _read(settings.home / FILE)
    url, token, theirs = address.get("url"), address.get("token"), address.get("settings")
    if not (isinstance(url, str) and isinstance(token, str) and isinstance(theirs, dict)):
        return None
    ours = _digest_each(settings)
    given = {"database_url", "redis_url", *settings.model_fields_set} & set(ours)
    if any(theirs.get(name) != ours[name] for name in given):
        return None
    return Address(url, token) if _is_alive(address.get("pid")) and _accepts_connections(url) else None


def format_url(host: str, port: int) -> str:
    """Return the URL of a host and port, IPv6 addresses in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _read(file: Path) -> dict[str, object]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _reachable(host: str) -> str:
    """Return an address that a client of this machine can connect to: a wildcard is an address only to listen on."""
    address = ip_address(host)
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def _is_alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _accepts_connections(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=1).close()
    except OSError:
        return False
    return True


def _digest_each(settings: Settings) -> dict[str, str]:
    """Return a digest of each setting that server and client share: `load_samples` is the server's alone, `api_key` and
    `server` are the client's."""
    shared = {name: _encode(value) for name, value in settings if name not in ("load_samples", "api_key", "server")}
    return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest() for name, value in shared.items()}


def _encode(value: object) -> object:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    # The order of a set differs between processes.
    return sorted(value) if isinstance(value, frozenset) else str(value)
