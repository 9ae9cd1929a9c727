"""A Typer group that imports a command's module only when that command is run."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

ROOMS = {
    "Ask": (
        "app.cli.asking",
        {
            "ask": "Ask a question and stream the answer with its sources.",
            "feedback": "Show what readers say of answers, or make an evaluation set of it.",
            "eval": "Measure how well questions are answered.",
        },
    ),
    "Documents": (
        "app.cli.library",
        {
            "ingest": "Add documents or update them.",
            "sync": "Keep the documents in step with a folder, website, bucket or WebDAV folder.",
            "ingestions": "List files that were handed over to be read in the background, or give some up.",
            "documents": "List the documents.",
            "delete": "Delete documents, their chunks and the answers cached from them.",
            "forget": "Erase a document or a thread everywhere, and prove it.",
        },
    ),
    "Find out why": (
        "app.workbench.cli",
        {
            "failures": "Group the runs that did not go well by cause, with examples.",
            "show": "Show what happened in a run, step by step: changes, calls, candidates, verdicts.",
            "why": "Say why a run ended as it did: searches, thresholds, sources, claims and doubts.",
            "whatif": "Try what would have changed a run's end: sources, grade, knobs, mode.",
            "diff": "Compare two runs: the first step where they part, and how both ended.",
            "export": "Write a run to a file that opens on any machine: states, tape, and what it cited.",
            "open": "Show the run in a file: why it ended as it did, and every step.",
            "test": "Repeat the runs in files strictly, and compare.",
            "replay": "Run a run again, or continue from a saved state, in a new thread.",
        },
    ),
    "Run the service": (
        "app.cli.operating",
        {
            "serve": "Serve the pages and the API.",
            "mcp": "Speak the Model Context Protocol on standard input and output.",
            "worker": "Execute runs and read uploads for servers on the same database.",
            "runs": "List runs that have ended, newest first: question, outcome, time, cost.",
            "costs": "Show what answering has cost: runs, calls, tokens, dollars.",
            "prune": "Delete old conversations: their states, runs and tapes.",
            "cache": "Count how many questions found a cached answer, and how many shared another one's run.",
            "keys": "Make, list and revoke API keys.",
            "audit": "Show who changed what: documents, conversations, keys.",
            "doctor": "Check a deployment: home, disk, database, cache, identity provider and models; or what "
            "is stored.",
            "graph": "Draw the graph.",
        },
    ),
}
"""The commands in the groups of the help: the package that holds a group, and the summary of each command. `NAME.py` in
the package holds the command as its Typer app `cli`. The summary stands here too, so that `askgraph --help` imports
none of them; a test keeps it equal to the docstring's first sentence."""

MODULES = {name: f"{package}.{name}" for package, commands in ROOMS.values() for name in commands}
"""The module of each command."""


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in MODULES:
            raise KeyError(name)
        return get_command(import_module(MODULES[name]).cli)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


class LazyGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()  # type: ignore[assignment]  # nothing is ever added

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands in the help without importing them."""
        for title, (_, commands) in ROOMS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))
