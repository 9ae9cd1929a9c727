"""The address file of a running server."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.serving.address import FILE, Address, find_server, publish_address
from app.settings import Settings, read_settings

TOKEN = "a token"


@pytest.fixture
def port() -> Iterator[int]:
    """A port of every address on which something listens."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        yield listener.getsockname()[1]


def make_settings(home: Path, **values: str) -> Settings:
    return read_settings(home=home, **values)


@pytest.mark.parametrize(
    ("host", "reachable"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("127.0.0.7", "127.0.0.7")],
)
def test_a_server_is_found_while_it_serves(tmp_path: Path, port: int, host: str, reachable: str) -> None:
    settings = make_settings(tmp_path / "home")
    assert find_server(settings) is None
    with publish_address(settings, host, port, TOKEN):
        assert find_server(settings) == Address(f"http://{reachable}:{port}", TOKEN)
        published = json.loads((settings.home / FILE).read_text())
        assert stat.S_IMODE((settings.home / FILE).stat().st_mode) == 0o600
        assert (published["url"], published["pid"]) == (f"http://{reachable}:{port}", os.getpid())
    assert find_server(settings) is None
    assert list(settings.home.iterdir()) == []


@pytest.mark.parametrize("name", ["openai_api_key", "database_url", "model_large"])
def test_a_server_with_other_settings_is_ignored(tmp_path: Path, port: int, name: str) -> None:
    with publish_address(make_settings(tmp_path, **{name: "postgresql://one"}), "127.0.0.1", port, TOKEN):
        assert find_server(make_settings(tmp_path, **{name: "postgresql://one"}))
        assert find_server(make_settings(tmp_path, **{name: "postgresql://two"})) is None
        # What is not given here is the server's, unless another database would be asked.
        assert (find_server(make_settings(tmp_path)) is None) == (name == "database_url")
        assert "postgresql" not in (tmp_path / FILE).read_text()


def test_a_second_server_of_a_home_leaves_the_first_its_address(tmp_path: Path, port: int) -> None:
    settings = make_settings(tmp_path)
    with publish_address(settings, "127.0.0.1", port, TOKEN):
        with publish_address(settings, "127.0.0.1", port, "other"):
            assert find_server(settings) == Address(f"http://127.0.0.1:{port}", "other")
        assert find_server(settings) == Address(f"http://127.0.0.1:{port}", TOKEN)
    assert find_server(settings) is None


def test_a_server_that_no_longer_listens_is_ignored(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()[1]
    with publish_address(make_settings(tmp_path), "127.0.0.1", free, TOKEN):
        assert find_server(make_settings(tmp_path)) is None


def test_the_file_of_a_dead_server_is_ignored(tmp_path: Path, port: int) -> None:
    settings = make_settings(tmp_path)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with publish_address(settings, "127.0.0.1", port, TOKEN):
        address = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps(address | {"pid": int(ended.stdout)}))
    assert find_server(settings) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"url": 1, "pid": 1}', '{"url": "http://x", "pid": "1"}'])
def test_a_damaged_file_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert find_server(make_settings(tmp_path)) is None


def test_the_file_of_a_later_server_is_kept(tmp_path: Path, port: int) -> None:
    settings = make_settings(tmp_path)
    with publish_address(settings, "127.0.0.1", port, TOKEN):
        address = json.loads((tmp_path / FILE).read_text())
        later = address | {"url": f"http://127.0.0.2:{port}", "pid": os.getppid()}
        (tmp_path / FILE).write_text(json.dumps(later))
    assert find_server(settings) == Address(later["url"], TOKEN)
