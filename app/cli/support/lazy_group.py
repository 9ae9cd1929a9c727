"""A Typer group that imports a command's module only when that command is run: importing all of them takes ten times as
long as `askgraph --help`."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Any:
        return get_command(import_module(self._modules[name]).cli)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


_FORMER = {
    "cache": "GET /api/cache",
    "failures": "askgraph runs --failed",
    "feedback": "askgraph eval DIR --rated 30d",
    "forget": "askgraph delete ID --everywhere",
    "graph": "GET /api/graph",
    "ingestions": "askgraph documents --waiting",
    "open": "askgraph why FILE` or `askgraph show FILE",
    "reindex": "askgraph ingest --embed-again",
    "test": "askgraph replay --tape strict FILE",
}
"""What does the work of the commands of 1.0.0 that are no more."""


def make_group(rooms: Mapping[str, ModuleType]) -> type[TyperGroup]:
    """Make the group of the commands in these packages, by their headings in the help.

    `NAME.py` in a package holds the command as its Typer app `cli`. The package's `COMMANDS` has a summary of each, so
    that the help imports none of them; a test keeps it equal to the docstring's first sentence.
    """
    modules = {name: f"{room.__name__}.{name}" for room in rooms.values() for name in room.COMMANDS}

    class LazyGroup(TyperGroup):
        """The group of all commands."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = _Commands(modules)  # type: ignore[assignment]  # nothing is ever added

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Find the command. One of 1.0.0 that is no more says what there is instead."""
            if args and (heir := _FORMER.get(args[0])):
                ctx.fail(f"'{args[0]}' is no command since 1.1.0: use `{heir}`.")
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """List the commands in the help without importing them."""
            for title, room in rooms.items():
                with formatter.section(title):
                    formatter.write_dl(list(room.COMMANDS.items()))

    return LazyGroup
