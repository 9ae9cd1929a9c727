"""Notices a reply that goes on and says no more: with blanks, dots and rules, or with the same words again."""

import re

MOST = 500
"""Characters without a word, or of words that are there already, after which a reply has ended. Chosen: more than the
line below the header of a wide table."""
_LIKE, _LONGEST = 24, 1000
"""Characters that come again by which a repetition is noticed, and the most that may be repeated."""
_STEP = 40
"""Characters that are looked at together."""
_WORD = re.compile(r"[^\W_]")
_FIRST = re.compile(r"[^\w\s.]{0,3}\.?")
"""What passes at once of what is no word: the end of a sentence, with its marker."""
_ENDED = re.compile(r"[.!?…。！？|\]]\s*\Z")
_NEXT_END = re.compile(r"[.!?…。！？|](?:\s?\[[\d, ]{1,20}\]\.?)?(?=\s)|\n")


class RunningOn:
    """Passes on the words of one reply, and keeps what may turn out to be nothing but more of the same."""

    def __init__(self) -> None:
        self.over = False
        """True once the reply only goes on."""
        self._held = ""
        self._run = ""
        """What has passed since the last word."""
        self._seen = self._passed = ""
        """The last characters, with what is held, and of what has passed."""
        self._period = 0
        """Characters after which the text repeats itself; 0 where it does not."""

    def feed(self, text: str) -> str:
        """Return what goes on now."""
        ready = "".join(self._feed(text[at : at + _STEP]) for at in range(0, len(text), _STEP))
        self._passed = (self._passed + ready)[-_LIKE:]
        return ready

    def finish(self) -> str:
        """Return the rest of the reply. Of one that only went on: what ends the sentence that it had begun."""
        if not self.over:
            return self._held.rstrip()
        if not self._period or _ENDED.search(self._passed):
            return ""
        end = _NEXT_END.search(self._held[: self._period])
        return self._held[: end.end()].rstrip() if end else ""

    def _feed(self, text: str) -> str:
        if self.over:
            return ""
        self._held += text
        self._seen = (self._seen + text)[-_LONGEST - _LIKE - _STEP :]
        if self._repeats(len(text)):
            self.over = len(self._held) >= max(MOST, 2 * self._period)
            return ""
        end = max((found.end() for found in _WORD.finditer(self._held)), default=0)
        ready, self._held = self._held[:end], self._held[end:]
        self._run = "" if ready else self._run
        first = _FIRST.match(self._run + self._held)
        more = max(0, first.end() - len(self._run)) if first else 0
        self._run += self._held[:more]
        ready, self._held = ready + self._held[:more], self._held[more:]
        self.over = len(self._held) >= MOST
        return ready

    def _repeats(self, size: int) -> bool:
        """Return True where the last `size` characters go on with a repetition, or are enough for one."""
        seen, period = self._seen, self._period
        if not period or seen[-size:] != seen[-size - period : -period]:
            at = seen.rfind(seen[-_LIKE:], 0, -1) if len(seen) > _LIKE else -1
            self._period = len(seen) - _LIKE - at if at >= 0 else 0
        return self._period > 0
