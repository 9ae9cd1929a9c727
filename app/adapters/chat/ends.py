"""Reads why a reply ended from the words of its provider, in any spelling: `MAX_TOKENS`, `maxTokens`, and compounds as
Gemini's `content_filter: RECITATION`."""

import re
from typing import Literal

End = Literal["whole", "full", "miscalled", "refused", "unknown"]

_WHOLE = {
    "stop", "sequence", "end", "turn", "eos", "token", "complete", "completed", "finished", "done", "tool", "tools",
    "call", "calls", "function", "use",
}  # fmt: skip
_FULL = {"length", "max", "window"}
_CALLS = {"call", "calls", "tool", "malformed"}
_REFUSED = {
    "filter", "filtered", "refusal", "safety", "prohibited", "blocklist", "recitation", "spii", "sensitive",
    "guardrail", "toxic",
}  # fmt: skip


def read_end(said: str | None) -> End:
    """Return what the end of a reply means. A word that is not known may be the end of a cut one: servers make them
    up."""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", said or "").lower()))
    if words and words <= _WHOLE:
        return "whole"
    if words & _FULL:
        return "full"
    # What is told of calls beside that there are some: one was malformed, unexpected, or filtered out.
    if words & _CALLS:
        return "miscalled"
    return "refused" if words & _REFUSED else "unknown"
