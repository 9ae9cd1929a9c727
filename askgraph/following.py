"""Follows a run over as many connections as it takes."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus

from askgraph import calls
from askgraph.errors import AskgraphError, Unavailable, read_failure
from askgraph.frames import Frame, FrameReader

ATTEMPTS = 8
"""Connections in a row that may fail before a run is given up by its reader; the pauses between them add up to 24
seconds."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
"""Seconds."""


class Following:
    """What is known of a run while its events are read, and what to request next.

    The caller sends `request`, hands over the response's headers and then its pieces, says when a connection failed,
    and begins anew after `pause` seconds, until `is_ended`.
    """

    def __init__(self, workspace: str | None, *, ask: calls.Request | None = None, run_id: str = "", after: str = ""):
        """Follow the run that `ask` starts, or the one with this id, after the event with the id `after`."""
        self._workspace = workspace
        self._ask = ask
        self.run_id = run_id
        self._last_id = after
        self._failures = 0
        self._has_failed = False
        """True where the failure of the current connection is counted."""
        self._again_in = 0.0
        self._frames = FrameReader()
        self.is_ended = False

    @property
    def request(self) -> calls.Request:
        """The request to send now."""
        if self._ask is not None and not self.run_id:
            return self._ask
        return calls.follow(self.run_id, self._workspace, self._last_id)

    @property
    def pause(self) -> float:
        """Seconds to wait before the next request: twice as long after each failure, or as the server says."""
        pause = FIRST_PAUSE * 2 ** (self._failures - 1) if self._failures else 0.0
        return min(LONGEST_PAUSE, max(pause, self._again_in))

    def begin(self, status: int, headers: Mapping[str, str]) -> Iterator[Frame]:
        """Take the headers of a response that is a success. Yields a frame `accepted` for a new run, which names it."""
        self._frames, self._has_failed = FrameReader(), False
        if status == HTTPStatus.NO_CONTENT:
            self.is_ended = True
        if not self.run_id:
            self.run_id = headers.get("x-run-id", "")
            named = {"run_id": self.run_id, "thread_id": headers.get("x-thread-id", "")}
            yield Frame("", "accepted", json.dumps(named).encode())

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that end in this piece. Raises the error with which the run ends."""
        for frame in self._frames.feed(piece):
            if frame.type == "error":
                error = read_failure(frame.event)
                if frame.id or not error.retryable:
                    self.is_ended = True
                    raise error
                # Of the connection, not of the run: this server is stopping, another one goes on.
                self.fail(error)
                return
            if frame.id:
                self._last_id = frame.id
                self._failures, self._again_in = 0, 0.0
            self.is_ended = frame.is_end
            yield frame

    def interrupt(self) -> None:
        """Note that a response has ended, which may have been before the run did."""
        if not self.is_ended and not self._has_failed:
            self.fail(Unavailable("The server closed the connection before the answer was complete.", retryable=True))

    def fail(self, error: AskgraphError) -> None:
        """Note that a connection failed. Raises the error where there is no run yet, or too many have failed, or it is
        of no use to try again."""
        self._failures += 1
        self._again_in = error.again_in or 0.0
        self._has_failed = True
        if not self.run_id or self._failures >= ATTEMPTS or not error.retryable:
            raise error
