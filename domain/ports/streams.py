"""The stream of a run's events between processes."""

from collections.abc import AsyncGenerator
from typing import Protocol

from domain.execution.streams import StreamedEvent


class RunStreams(Protocol):
    """Never raises for a server that is gone: a run and those who follow it in its own process do without; others find
    how the run ended in `domain.ports.runs.RunQueue`."""

    def append(self, run_id: str, event: StreamedEvent) -> None:
        """Add an event at the end. Returns at once; what was appended is stored in order, many in one go. An id that is
        not greater than the stream's last is dropped."""

    async def flush(self, run_id: str) -> None:
        """Return once everything appended so far is stored, or the server is gone."""

    def follow(self, run_id: str, after: str | None = None) -> AsyncGenerator[StreamedEvent | None]:
        """The events past the id `after`, those that are there and then those that come, to the end of the stream. None
        whenever nothing has come for a while, or the server is gone: whoever follows can see then what became of the
        run. It goes on for as long as it is followed."""
