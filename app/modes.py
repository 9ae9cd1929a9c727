"""Reads the modes: those that ship, and those of the deployment's profiles file."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.adapters.rerankers.registry import METHODS
from app.settings import Settings
from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError, UnknownMode
from domain.library.similarity import Scale, adapt_limits
from domain.people.names import find_twin
from domain.profile import MODES, Profile

logger = logging.getLogger("askgraph.modes")

PIPELINES = Path(__file__).parent / "pipelines"


def read_modes(settings: Settings) -> dict[str, Profile]:
    """Return the shipped modes and the deployment's own, by name.

    A profiles file looks like this::

        [brief]
        extends = "standard"
        generate.citation_style = "source"
        generate.max_sentences = 2

    Raises `ConfigurationError` if the file cannot be read or sets a knob that does not exist.
    """
    modes = dict(MODES)
    if settings.profiles is not None:
        pipelines = _find_pipelines()
        path = settings.profiles
        if not path.is_file():
            path = pipelines.get(str(path), path)
        modes |= _read_profiles(path, pipelines)
    for mode in modes.values():
        if (mode.models.timeout or 0) > settings.model_timeout:
            raise ConfigurationError(
                f"The mode {mode.name!r} waits {mode.models.timeout:g} s for its models, and every step ends after "
                f"ASKGRAPH_MODEL_TIMEOUT, {settings.model_timeout:g} s. Raise that, or lower models.timeout."
            )
    wanting = [name for name, mode in modes.items() if mode.rerank.method == "cross_encoder"]
    if settings.cross_encoder is None and wanting:
        logger.warning(
            "ASKGRAPH_CROSS_ENCODER is not set, so these modes rerank by late interaction: %s.", ", ".join(wanting)
        )
        for name in wanting:
            rerank = modes[name].rerank.model_copy(update={"method": "local"})
            modes[name] = modes[name].model_copy(update={"rerank": rerank})
    return modes


def find_mode(modes: Mapping[str, Profile], name: str) -> Profile:
    """Return the mode of that name. Raises `UnknownMode`."""
    if mode := modes.get(name):
        return mode
    pipeline = f" {name!r} ships and is off: ASKGRAPH_PROFILES={name} adds it." if name in _find_pipelines() else ""
    twin = find_twin(name, modes)
    looks = f" It looks like {twin!r}, which has other letters." if twin else ""
    known = ", ".join(each for each in modes if "@" not in each)
    raise UnknownMode(f"There is no mode {name!r}.{looks} There are: {known}.{pipeline}")


def fit_modes(modes: Mapping[str, Profile], embedder: str, scale: Scale | None) -> dict[str, Profile]:
    """Return the modes with limits of similarity that fit the embedding model in use, and warn of each that changed."""
    fitted = {}
    for name, mode in modes.items():
        fitted[name], warning = adapt_limits(mode, embedder, scale)
        if warning:
            logger.warning("%s", warning)
    return fitted


def _find_pipelines() -> dict[str, Path]:
    """Return the shipped profiles files by name. Each makes the choices of a known pipeline."""
    return {file.stem: file for file in sorted(PIPELINES.glob("*.toml"))}


def _read_profiles(path: Path, pipelines: dict[str, Path]) -> dict[str, Profile]:
    unusable = f"The profiles file {path} cannot be used: "
    tables = read_toml(path, "profiles file")
    modes: dict[str, Profile] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigurationError(f"{unusable}{name!r} is not a mode. A mode is a table: [{name}].")
        if "@" in name:
            raise ConfigurationError(
                f"{unusable}{name!r} cannot be the name of a mode: @ is for versions of assistants."
            )
        if (twin := find_twin(name, MODES | modes)) not in (None, name):
            raise ConfigurationError(f"{unusable}the mode {name!r} looks like {twin!r}. Give it another name.")
        extended = table.pop("extends", "standard")
        known = MODES | modes
        if isinstance(extended, str) and extended not in known and extended in pipelines:
            known |= _read_profiles(pipelines[extended], {})
        if not isinstance(extended, str) or extended not in known:
            raise ConfigurationError(
                f"{unusable}[{name}] extends {extended!r}; it can extend one of {', '.join([*known, *pipelines])}, "
                "or a mode that stands above it."
            )
        try:
            modes[name] = vary(known[extended].model_dump(), {**table, "name": name})
        except ValidationError as error:
            raise ConfigurationError(f"{unusable}[{name}] {list_problems(error)}.") from error
    return modes


def vary(base: Mapping[str, Any], changes: dict[str, Any]) -> Profile:
    """Return the profile with `changes` applied, group by group. Raises `ValidationError`."""
    known = Profile.model_validate(base).model_dump()
    return Profile.model_validate(merge_knobs(known, changes), context={"rerankers": METHODS})


def merge_knobs(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `changes` applied, group by group."""
    merged = dict(base)
    for key, value in changes.items():
        known = merged.get(key)
        merged[key] = merge_knobs(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged
