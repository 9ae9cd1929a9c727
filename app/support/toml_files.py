"""Reads TOML files that a deployment writes, and describes what is wrong with them."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from domain.errors import ConfigurationError


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Return the file's contents. `kind` names it in messages: `profiles file`.

    Raises `ConfigurationError`.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"The {kind} {path} cannot be used: {error}.") from error


def list_problems(error: ValidationError) -> str:
    """List each wrong value by its place, with the reason."""
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
