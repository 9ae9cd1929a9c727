"""How often a run is begun."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.answering.run_answer import MAX_ATTEMPTS, RunAnswer
from domain.errors import RunLost


class _Begun(Exception):
    """Stands for all that an attempt does."""


def begin(attempt: int) -> RunAnswer:
    async def read(thread_id: str) -> Any:
        raise _Begun

    request = SimpleNamespace(turn={}, thread_id="t", begins_thread=False)
    parts = SimpleNamespace(states=SimpleNamespace(read=read), graph=None, observe=lambda request: None)
    lease = SimpleNamespace(request=request, attempt=attempt)
    nothing = cast(Any, None)
    run = RunAnswer(cast(Any, parts), cast(Any, lease), nothing, nothing, 0.0, control=nothing)
    run._read_state = lambda: read("t")  # type: ignore[method-assign]
    return run


async def test_a_run_that_took_its_processes_with_it_is_given_up() -> None:
    with pytest.raises(_Begun):
        await begin(MAX_ATTEMPTS).find()
    with pytest.raises(RunLost):
        await begin(MAX_ATTEMPTS + 1).find()
