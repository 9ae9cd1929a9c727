"""The address file of a running server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.serving.address import FILE, find_server, publish_address


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("10.0.0.7", "http://10.0.0.7:8000"),
    ],
)
def test_a_server_is_found_while_it_serves(tmp_path: Path, host: str, url: str) -> None:
    home = tmp_path / "home"
    assert find_server(home) is None
    with publish_address(home, host, 8000):
        assert find_server(home) == url
        assert json.loads((home / FILE).read_text()) == {"url": url, "pid": os.getpid()}
    assert find_server(home) is None
    assert list(home.iterdir()) == []


def test_the_file_of_a_dead_server_is_ignored(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / FILE).write_text(json.dumps({"url": "http://127.0.0.1:8000", "pid": int(ended.stdout)}))
    assert find_server(tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"url": 1, "pid": 1}', '{"url": "http://x", "pid": "1"}'])
def test_a_damaged_file_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert find_server(tmp_path) is None


def test_the_file_of_a_later_server_is_kept(tmp_path: Path) -> None:
    with publish_address(tmp_path, "127.0.0.1", 8000):
        (tmp_path / FILE).write_text(json.dumps({"url": "http://127.0.0.1:8001", "pid": os.getppid()}))
    assert find_server(tmp_path) == "http://127.0.0.1:8001"
