"""Patterns of `LIKE`."""


def escape(words: str) -> str:
    """Return words of people for a pattern that takes them literally."""
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
