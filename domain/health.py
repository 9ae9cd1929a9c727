"""Health checks: each part of the service reports its own problems."""

from collections.abc import Awaitable, Callable, Mapping

Check = Callable[[], Awaitable[str | None]]
"""Returns None while the part works, and otherwise the problem in words. Must not raise."""

ANSWERING = "answering/"
"""Prefix of the checks of single language models; the rest of the name is the model's."""


async def run_checks(checks: Mapping[str, Check]) -> dict[str, str | None]:
    """Run all checks, one after another. Returns each check's problem, None where there is none."""
    return {name: await check() for name, check in checks.items()}
