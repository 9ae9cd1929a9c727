"""Renders the page of settings: `python -m app.settings_page > docs/operations/settings.md`."""

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from app.adapters.chat.providers import PACKAGES
from app.settings import Settings
from domain.history.retention import Policy

PROVIDERS = ("openai", *(package.setting for package in PACKAGES.values()))

SECTIONS = {
    "Storage": (
        *("home", "database_url", "redis_url", "pgvectorstore", "pgvectorstore_url", "originals", "max_document_mb"),
        *("parser_seconds", "parser_memory_mb", "load_samples"),
    ),
    "Models": (
        *(f"{each}_{part}" for each in PROVIDERS for part in ("api_key", "base_url")),
        *("model_small", "model_large", "model_judge", "model_fallbacks", "model_timeout"),
        *("embeddings", "embeddings_base_url", "embeddings_api_key", "prices", "cohere_api_key", "cohere_base_url"),
        *("rerank_model", "cross_encoder"),
    ),
    "Who may do what": (
        *(
            "hosts",
            "server",
            "api_key",
            "oidc_issuer",
            "oidc_audience",
            "oidc_client_id",
            "oidc_client_secret",
            "oidc_scopes",
        ),
        *("oidc_workspaces_claim", "oidc_groups_claim", "oidc_rights_claim", "max_runs", "max_runs_per_caller"),
        *("requests_per_minute", "tokens_per_day", "dollars_per_day"),
    ),
    "Answers, and what is kept of them": (
        *("profiles", "log_format", "answer_ttl_hours", "tapes", "untaped_workspaces", "retention", "keep_steps"),
        *("keep_steps_of", "audit_days"),
    ),
}

_BEFORE = """# Settings

Everything is set in the environment. Made from `app/settings.py` by `python -m app.settings_page`; a test compares.
"""

_AFTER = """
## Variables of other tools

| variable | sets |
|---|---|
| `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` | key and region for \
[files in a bucket](library.md#keep-files-in-s3-compatible-storage), and the address of storage that is not Amazon's |
| `LANGSMITH_TRACING`, `LANGSMITH_API_KEY`, `LANGSMITH_ENDPOINT`, `LANGSMITH_PROJECT` | traces of every node at \
LangSmith |
| `OTEL_EXPORTER_OTLP_ENDPOINT` | the collector of [traces](monitoring.md#watch-it) |
| `FORWARDED_ALLOW_IPS` | proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count |

More about them: [models](../models.md), [profiles](../profiles.md), [tables of PGVectorStore](../pgvectorstore.md), \
[keys, people and limits](security.md#let-others-in), [retention](retention.md#delete-old-conversations), \
[tapes](replay.md).
"""


def render_page() -> str:
    """Render the page, in Markdown. Raises `ValueError` where a setting is in no section, or lacks a description."""
    listed = [name for names in SECTIONS.values() for name in names]
    if sorted(listed) != sorted(Settings.model_fields):
        raise ValueError(f"SECTIONS differ from the settings: {set(listed) ^ set(Settings.model_fields)}")
    tables = (f"\n## {title}\n\n{_render_table(names)}" for title, names in SECTIONS.items())
    return _BEFORE + "".join(tables) + _AFTER


def _render_table(names: Sequence[str]) -> str:
    described = dict(_read_descriptions(Settings))
    if missing := set(names) - set(described):
        raise ValueError(f"These settings have no description: {missing}")
    rows = [
        f"| {_name_variables(name)} | {_show_default(Settings.model_fields[name])} | {described[name]} |\n"
        for name in names
    ]
    return f"| variable | default | |\n|---|---|---|\n{''.join(rows)}"


def _read_descriptions(settings: type[BaseSettings]) -> Iterator[tuple[str, str]]:
    """Yield the name of each field with the text below it, in one line."""
    [body] = ast.parse(inspect.getsource(settings)).body
    assert isinstance(body, ast.ClassDef)
    for field, below in pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text = " ".join(str(below.value.value).split())
            yield ast.unparse(field.target), re.sub(r"`(\w+)`", _name_setting, text)


def _name_setting(quoted: re.Match[str]) -> str:
    """Replace the name of a field by that of its variable."""
    return _name_variables(quoted[1]) if quoted[1] in Settings.model_fields else quoted[0]


def _name_variables(name: str) -> str:
    alias: Any = Settings.model_fields[name].validation_alias
    return " or ".join(f"`{each}`" for each in (alias.choices if alias else [f"ASKGRAPH_{name.upper()}"]))


def _show_default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "`~/.askgraph`"
    match field.default:
        case None | () | frozenset() | Policy():
            return "none"
        case bool() as flag:
            return str(flag).lower()
        case timedelta() as span:
            return f"{span.days}d"
        case int() | float() as number:
            return f"{number:g}"
        case text:
            return f"`{text}`"


if __name__ == "__main__":
    print(render_page(), end="")
