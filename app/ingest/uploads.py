"""Room for uploads, which all callers share: how many bytes may be under way, and how many large files in memory."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext

from app.support.turns import Turns
from domain.errors import TooManyUploads

SMALL = 2**20
"""Files up to this size are kept in memory while they arrive, and larger ones in a file on the disk."""
LARGE_AT_ONCE = 3
"""Large files in memory at once, from when they are loaded until they are stored: each takes three times its size. A
workspace gets one less."""


class UploadRoom:
    """Refuses uploads that exceed what is left, before their body is read. A caller gets half of it, so that no one can
    take it all; a single upload may be larger. Belongs to one event loop."""

    def __init__(self, most: int) -> None:
        """`most` are the bytes of all uploads that are under way."""
        self._most = most
        self._held = Counter[str]()
        """By caller."""
        self._turns = Turns(LARGE_AT_ONCE, LARGE_AT_ONCE - 1)

    @contextmanager
    def hold(self, caller: str, size: int) -> Iterator[Callable[[int], None]]:
        """Count an upload of so many bytes until it has been answered. Yields what counts more of them, for one that
        does not say its size. Raises `TooManyUploads`, and so does what is yielded."""
        held = 0

        def grow(more: int) -> None:
            nonlocal held
            others = self._held[caller] - held
            if self._held.total() + more > self._most or (others and self._held[caller] + more > self._most // 2):
                raise TooManyUploads
            self._held[caller] += more
            held += more

        try:
            grow(size)
            yield grow
        finally:
            self._held[caller] -= held
            if not self._held[caller]:
                del self._held[caller]

    def take_turn(self, owner: str, size: int) -> AbstractAsyncContextManager[None]:
        """Wait until a file of this size may be loaded. Owners take turns; small files do not wait."""
        return nullcontext() if size <= SMALL else self._turns.take(owner)
