"""A circuit around one model: while its provider does not answer, calls fail at once instead of waiting for it.

purgatory keeps the state (closed, opened, half-opened). Its own context manager lets every caller through while the
circuit is half open, and takes a caller who left for a success; here one caller at a time tries, and who left says
nothing (docs/decisions/12-models-and-fallbacks.md).
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from purgatory.domain.model import Context, OpenedState

from domain.errors import AskgraphError, ModelError, ModelRejectedKey, ModelUnavailable

THRESHOLD = 3
"""Consecutive calls without an answer, each with its retries, that open the circuit."""
PAUSE = 30.0
"""Seconds until somebody tries again."""
_SILENCE = 5.0
"""Seconds without a word after which a call that was given up counts as one without an answer: a step that stops
waiting looks like a reader who presses Stop."""


class Circuit:
    """Of one model at one address."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._context = Context(name, threshold=THRESHOLD, ttl=PAUSE)
        self._probing = False
        self.problem: str | None = None
        """What was wrong with the last call, or with what was checked before there was one."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around one call, up to the first thing that comes back.

        Raises `ModelUnavailable` without making the call while the circuit is open, or while another call tries whether
        it may close. Only `ModelUnavailable` counts against the provider: one that refuses has answered.
        """
        probes = self._enter()
        begun = time.monotonic()
        try:
            yield
        except ModelUnavailable as error:
            self.problem = error.message
            self._context.handle_exception(error)
            raise
        except asyncio.CancelledError as error:
            if time.monotonic() - begun >= _SILENCE:
                self._context.handle_exception(error)
            raise
        except AskgraphError as error:
            # A prompt that is refused, or too long, was read; a key, a name or an account that is wrong stays so.
            wrong = isinstance(error, ModelRejectedKey) or type(error) is ModelError
            self.problem = error.message if wrong else None
            self._context.handle_end_request()
            raise
        else:
            self.problem = None
            self._context.handle_end_request()
        finally:
            # Events for purgatory's message bus, which nobody reads here.
            self._context.messages.clear()
            if probes:
                self._probing = False

    def describe(self) -> str:
        """How the provider answers, in words."""
        if (seconds := self._closed_for()) > 0:
            return f"not answering; tried again in {seconds:.0f} s"
        if self._context.state != "closed":
            return "not answering; tried again with the next question"
        return self.problem or "ok"

    def find_problem(self) -> str | None:
        """What is wrong now, in a sentence; None where nothing is."""
        return self.problem if self._context.state == "closed" else self._refuse().message

    def _enter(self) -> bool:
        """Whether the call that enters tries if the circuit may close."""
        try:
            self._context.handle_new_request()
        except OpenedState as state:
            raise self._refuse() from state
        if self._context.state == "closed":
            return False
        if self._probing:
            raise self._refuse()
        self._probing = True
        return True

    def _refuse(self) -> ModelUnavailable:
        seconds = max(1.0, self._closed_for())
        return ModelUnavailable(f"{self._name} is not answering; it is tried again in {seconds:.0f} s.")

    def _closed_for(self) -> float:
        opened = self._context.opened_at
        return 0.0 if opened is None else opened + self._context.ttl - time.time()
