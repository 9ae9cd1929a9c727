"""Text that cannot be written as UTF-8: halves of surrogate pairs, which broken documents and file names contain."""


def replace_surrogates(text: str) -> str:
    """`text` with a question mark for each half of a surrogate pair, which tokenizers and servers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
