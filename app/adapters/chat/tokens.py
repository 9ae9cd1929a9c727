"""Token counts without a network."""

import quicktok

from domain.text.surrogates import replace_surrogates


class O200kCounter:
    """Counts tokens of the o200k_base encoding (GPT-4o and later). A `TokenCounter`.

    quicktok ships its tables; tiktoken would fetch them from the network.
    """

    def __init__(self) -> None:
        self._encoding = quicktok.get_encoding("o200k_base")

    def count(self, text: str) -> int:
        """Count the tokens of `text`. Special tokens written out count as ordinary text, a lone surrogate as a question
        mark."""
        return int(self._encoding.count(replace_surrogates(text)))
