"""The address file of a running server, by which commands of the same home folder find it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

FILE = "server.json"


@contextmanager
def publish_address(home: Path, host: str, port: int) -> Iterator[None]:
    """Keep the address in `<home>/server.json` as `{"url", "pid"}` until the end of the block."""
    file = home / FILE
    home.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({"url": format_url(_reachable(host), port), "pid": os.getpid()}))
    new.replace(file)
    try:
        yield
    finally:
        # Another server of the same home may have replaced it.
        if _read(file).get("pid") == os.getpid():
            file.unlink(missing_ok=True)


def find_server(home: Path) -> str | None:
    """Return the URL of the running server of a home folder, such as `http://127.0.0.1:8000`; None if there is none.

    The file of a server that was killed is ignored.
    """
    address = _read(home / FILE)
    pid, url = address.get("pid"), address.get("url")
    return url if isinstance(url, str) and isinstance(pid, int) and _is_alive(pid) else None


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


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
