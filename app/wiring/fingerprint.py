"""The fingerprint of this installation: cached answers of other code or other models are not reused."""

import hashlib
from pathlib import Path

from app.settings import Settings
from nodes.context import TIERS, Models

_ROOT = Path(__file__).parents[2]
_DECIDING = ("domain", "nodes", "graphs", "app/adapters", "app/answering")
"""Folders of the code that decides what an answer says and how it is stored."""


def name_models(models: Models, settings: Settings) -> list[str]:
    """Name what determines which models answer. Models that a mode names are part of its profile instead."""
    tiers = [f"{tier}={model.name if (model := getattr(models, tier)) else ''}" for tier in TIERS]
    fallbacks = [f"fallback={model.name}" for model in models.fallbacks]
    return [*tiers, *fallbacks, *(provider.base_url or "" for provider in settings.providers.values())]


def fingerprint_installation(*names: str) -> str:
    """Return the SHA-256, in hex, of the deciding code (prompts included) and the names of the models in use."""
    digest = hashlib.sha256("\0".join(names).encode())
    for folder in _DECIDING:
        for file in sorted(each for kind in ("py", "sql", "toml") for each in (_ROOT / folder).rglob(f"*.{kind}")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
