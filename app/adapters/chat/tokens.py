"""Token counts without a network."""

import math
from functools import cache
from typing import Any

import quicktok

from domain.ports.pictures import Picture
from domain.text.storable import replace_surrogates


class O200kCounter:
    """Counts tokens of the o200k_base encoding (GPT-4o and later). A `TokenCounter`.

    quicktok ships its tables; tiktoken would fetch them from the network.
    """

    def count(self, text: str) -> int:
        """Count the tokens of `text`. Special tokens written out count as ordinary text, a lone surrogate as a question
        mark."""
        return int(_load().count(replace_surrogates(text)))


@cache
def _load() -> Any:
    """Read the tables, which takes 50 MB and half a second in which no other thread runs: a server does it first."""
    return quicktok.get_encoding("o200k_base")


def count_picture(picture: Picture) -> int:
    """Estimate the tokens that a provider counts for a picture, by OpenAI's formula; others are nearer to it than to
    nothing. Replies report what was counted; this is for those that were broken off.
    https://platform.openai.com/docs/guides/images-vision#calculating-costs"""
    scale = min(1.0, 768 / min(picture.width, picture.height))
    return 85 + 170 * math.ceil(picture.width * scale / 512) * math.ceil(picture.height * scale / 512)
