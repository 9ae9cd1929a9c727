"""Renders the page of settings: `python -m tests.settings_reference > docs/operations/settings.md`."""

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from app.settings import Settings
from app.support.docstrings import list_descriptions
from domain.history.retention import Policy

SECTIONS = {
    "Storage": "home",
    "Models": "openai_api_key",
    "Who may do what": "hosts",
    "Answers, and what is kept of them": "profiles",
}
"""The first setting of each section; the others follow it in `Settings`."""

_BEFORE = """# Settings

Everything is set in the environment. Made by `python -m tests.settings_reference`, which a test compares.
"""

_AFTER = """
## Variables of other tools

| variable | sets |
|---|---|
| `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` | key and region for \
[files in a bucket](library.md#keep-files-in-s3-compatible-storage), and the address of storage that is not Amazon's |
| `LANGSMITH_TRACING`, `LANGSMITH_API_KEY`, `LANGSMITH_ENDPOINT`, `LANGSMITH_PROJECT` | traces of every node at \
LangSmith |
| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` | the collector of \
[traces](monitoring.md#see-runs-in-phoenix-or-langfuse), and whether they hold texts |
| `FORWARDED_ALLOW_IPS` | proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count; unset: none |

More about them: [models](../models.md), [profiles](../profiles.md), [tables of PGVectorStore](../pgvectorstore.md), \
[keys, people and limits](security.md#let-others-in), [retention](retention.md#delete-old-conversations), \
[tapes](explain.md#tapes).
"""


def render_page() -> str:
    """Render the page, in Markdown. Raises `ValueError` where a setting lacks a description."""
    names = list(Settings.model_fields)
    begins = [*map(names.index, SECTIONS.values()), None]
    sections = zip(SECTIONS, pairwise(begins), strict=True)
    return (
        _BEFORE + "".join(f"\n## {title}\n\n{_render_table(names[slice(*span)])}" for title, span in sections) + _AFTER
    )


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
    for name, text in list_descriptions(body):
        yield name, re.sub(r"`(\w+)`", _name_setting, text)


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
