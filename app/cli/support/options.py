"""Options and arguments that several commands share."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from app.cli.support.running import fail
from domain.errors import InputError, StateError
from domain.library.where import Where
from domain.people.names import THREAD_ID, WORKSPACE_ID
from domain.scope import Scope


def new_cli(**options: Any) -> typer.Typer:
    """Return the Typer app of a command, or of a group of commands."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options)


def check_workspace(name: str | None) -> str | None:
    """End the command if this cannot be a workspace's name."""
    return _check_name("workspace", name, WORKSPACE_ID)


def check_thread(name: str | None) -> str | None:
    """End the command if this cannot be a thread's id."""
    return _check_name("thread", name, THREAD_ID)


def _check_name(kind: str, name: str | None, pattern: str) -> str | None:
    if name is not None and not re.fullmatch(pattern, name):
        fail(InputError(f"{name!r} cannot be the name of a {kind}: it has to match {pattern}."))
    return name


def read_scope(workspace: str, documents: list[str] | None, where: str | None) -> Scope:
    """Return the scope that the options name. Raises `FilterError`."""
    return Scope.within(workspace, documents or None, Where.parse_option(where))


def parse_changes(changes: Sequence[str]) -> dict[str, str]:
    """Read the values of `--set`. Raises `StateError`."""
    parsed = {}
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator or not key:
            raise StateError(f"--set takes key=value, not {change!r}.")
        parsed[key.strip()] = value
    return parsed


WorkspaceOption = Annotated[
    str, typer.Option("--workspace", "-w", help="The workspace (tenant).", callback=check_workspace)
]
AnyWorkspaceOption = Annotated[
    str | None,
    typer.Option("--workspace", "-w", help="Only this workspace. [default: all]", callback=check_workspace),
]
ThreadOption = Annotated[str | None, typer.Option("--thread", help="Continue this thread.", callback=check_thread)]
DocumentsOption = Annotated[
    list[str] | None, typer.Option("--document", help="Answer only from this document; repeatable.")
]
WhereOption = Annotated[
    str | None,
    typer.Option("--where", help="Only documents whose metadata fits, such as 'team=legal and year>=2024'."),
]
ModeOption = Annotated[
    str, typer.Option("--mode", "-m", help="fast, standard, thorough, research, one of your own, or an assistant.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
