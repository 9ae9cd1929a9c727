"""TOML files that a deployment writes, and what is wrong with them in words."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from domain.errors import ConfigurationError


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """The file's contents. `kind` is what it is called where it cannot be read: `profiles file`.

    Raises `ConfigurationError`.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"The {kind} {path} cannot be used: {error}.") from error


def list_problems(error: ValidationError) -> str:
    """Each value that is wrong, by its place, and why."""
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
