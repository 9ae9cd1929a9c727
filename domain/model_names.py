"""The names of language models, in settings and profiles."""

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _check_model(name: str) -> str:
    if not name or name.endswith(":") or any(map(str.isspace, name)):
        raise PydanticCustomError(
            "model_name",
            "{given} is no name of a language model; without this setting the default is used",
            {"given": repr(name)},
        )
    return name


NO_MODEL = ("none", "local")
"""Names for no model: what would ask one judges or quotes locally."""

ModelName = Annotated[str, AfterValidator(_check_model)]
"""A language model's name, with or without its provider before a colon."""
