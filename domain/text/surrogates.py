"""Replaces halves of surrogate pairs, which broken documents and file names contain and UTF-8 cannot encode."""


def replace_surrogates(text: str) -> str:
    """Return `text` with a question mark for each half of a surrogate pair, which tokenizers and servers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
