"""Joins surrogate pairs and replaces lone halves, which broken documents and file names contain and UTF-8 cannot
encode."""


def replace_surrogates(text: str) -> str:
    """Return `text` with a question mark for each half of a surrogate pair, which tokenizers and servers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def join_surrogates(text: str) -> str:
    """Return `text` with each surrogate pair as the one character that it stands for, and U+FFFD for each lone half."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
