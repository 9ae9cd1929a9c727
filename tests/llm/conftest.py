from collections.abc import Iterator

import pytest

from tests.wire.llama import find_missing, serve_llama


@pytest.fixture(scope="session")
def llama() -> Iterator[str]:
    """The address of llama.cpp's own server, for the whole session."""
    if missing := find_missing():
        pytest.skip(missing)
    with serve_llama() as base_url:
        yield base_url
