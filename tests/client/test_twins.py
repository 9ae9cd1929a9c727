"""There is one client: the one that blocks is made from the one for asyncio."""

from tests.client.generate import TARGET, render


def test_the_blocking_client_is_the_one_that_is_generated() -> None:
    assert TARGET.read_text("utf-8") == render(), "run: python -m tests.client.generate"
