"""A circuit breaker for one model: while its provider does not answer, calls fail at once instead of waiting.

One caller at a time tries whether it answers again, and a call that is not needed any more counts neither way
(docs/decisions/12-models-and-fallbacks.md).
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from domain.errors import AskgraphError, ModelError, ModelRejectedKey, ModelUnavailable, explain
from domain.ports.models import AWAITED_UNTIL

THRESHOLD = 3
"""Consecutive unanswered calls, each with its retries, that open the circuit."""
PAUSE = 30.0
"""Seconds until a call probes an open circuit."""
_SILENCE = 5.0
"""Seconds of silence after which a call that its step stopped waiting for counts as unanswered. A step may have had
less time left."""
_TICK = 0.01
"""Seconds by which a timer of the event loop may come early."""


class Circuit:
    """The circuit breaker of one model at one address."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failures = 0
        """Unanswered calls, one after the other."""
        self._since = ""
        """When the first of them failed."""
        self._opened_at = 0.0
        self._probing = False
        self._free_at = 0.0
        """When the provider takes requests again, as far as it said."""
        self.problem: str | None = None
        """Problem of the most recent call, or of the start-up check before any."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guard one call, up to the first thing that comes back.

        Raises `ModelUnavailable` without making the call while the circuit is open, or while another call probes it.
        Only `ModelUnavailable` counts against the provider: a refusal is an answer.
        """
        probes = self._enter()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            yield
        except ModelUnavailable as error:
            self.problem = explain(error)
            self._count_failure()
            raise
        except asyncio.CancelledError:
            if loop.time() - begun >= _SILENCE and loop.time() + _TICK >= AWAITED_UNTIL.get():
                self.problem = f"{self._name} took too long."
                self._count_failure()
            raise
        except AskgraphError as error:
            # A refused or too long prompt was read, so the model works; a wrong key, name or account stays wrong.
            wrong = isinstance(error, ModelRejectedKey) or type(error) is ModelError
            self.problem = explain(error) if wrong else None
            self._failures = 0
            raise
        else:
            self.problem = None
            self._failures = 0
        finally:
            if probes:
                self._probing = False

    def keep_wait(self, error: ModelUnavailable) -> None:
        """Keep until when the provider wants no request, if that is soon, for the calls that come next."""
        if error.again_in is not None and error.again_in <= PAUSE:
            self._free_at = time.monotonic() + error.again_in

    def find_wait(self) -> ModelUnavailable | None:
        """Return an error that says how long the provider still wants no request; None where it takes one, and where
        the circuit is open."""
        seconds = self._free_at - time.monotonic()
        message = f"{self._name} is busy; it is asked again in {max(1.0, seconds):.0f} s."
        return ModelUnavailable(message, again_in=seconds) if seconds > 0 and not self._is_open else None

    def describe(self) -> str:
        """Describe the provider's state in words."""
        if (seconds := self._closed_for()) > 0:
            return f"not answering; tried again in {seconds:.0f} s. {self._why}"
        if self._is_open:
            return f"not answering; tried again with the next question. {self._why}"
        return self.problem or "ok"

    def find_problem(self) -> str | None:
        """Return the current problem as a sentence; None if there is none."""
        return explain(self._refuse()) if self._is_open else self.problem

    @property
    def _is_open(self) -> bool:
        return self._failures >= THRESHOLD

    @property
    def _why(self) -> str:
        return f"Since {self._since}: {self.problem or 'no answer'}"

    def _count_failure(self) -> None:
        # Not of calls that were under way when the circuit opened: they would lengthen its pause.
        if not self._is_open or self._probing:
            self._since = self._since if self._failures else time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
            self._failures += 1
            self._opened_at = time.monotonic()

    def _enter(self) -> bool:
        """Return True if the entering call is the one that tries an open circuit."""
        if not self._is_open:
            return False
        if self._probing or self._closed_for() > 0:
            raise self._refuse()
        self._probing = True
        return True

    def _refuse(self) -> ModelUnavailable:
        seconds = max(1.0, self._closed_for())
        message = f"{self._name} is not answering; it is tried again in {seconds:.0f} s."
        return ModelUnavailable(message, said=self._why)

    def _closed_for(self) -> float:
        return self._opened_at + PAUSE - time.monotonic() if self._is_open else 0.0
