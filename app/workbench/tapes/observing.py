"""Stands round the ports of runs: records their tapes, and answers calls of a branch from the tape of its origin."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.workbench.tapes.tape import Call, Tape
from app.workbench.tapes.tapes import encode_tape
from app.workbench.tapes.taping import Player, describe, fill, record
from domain.events import Event
from domain.runs import RunRequest
from nodes.context import Context


class Tapes:
    """Makes an observer for each run of this process."""

    def __init__(self, untaped_workspaces: frozenset[str] = frozenset(), *, enabled: bool = True) -> None:
        self._untaped = untaped_workspaces
        self._enabled = enabled
        self._players: dict[str, Player] = {}

    def observe(self, request: RunRequest) -> "TapeObserver":
        """Return what stands round the run."""
        is_taped = self._enabled and request.workspace_id not in self._untaped
        return TapeObserver(is_taped=is_taped, player=self._players.get(request.run_id))

    @contextmanager
    def playing(self, run_id: str, player: Player) -> Iterator[None]:
        """Let `player` answer the calls of the run of this id, which begins meanwhile, where it can."""
        self._players[run_id] = player
        try:
            yield
        finally:
            del self._players[run_id]


class TapeObserver:
    """Stands round one run."""

    def __init__(self, *, is_taped: bool, player: Player | None) -> None:
        self._is_taped = is_taped
        self._player = player
        self._context: Context | None = None
        self._calls: list[Call] = []

    def wrap(self, context: Context) -> Context:
        """Put the player before the ports, and the recording round both."""
        if self._player is not None:
            context = fill(context, self._player)
        if self._is_taped:
            self._context = context = record(context, self._calls)
        return context

    def finish(self, events: Sequence[Event]) -> tuple[bytes | None, str | None]:
        """Return the encoded tape; None where the run has none, with the reason where it has become too large."""
        if self._context is None:
            return None, None
        return encode_tape(Tape(describe(self._context), self._calls, list(events)))
