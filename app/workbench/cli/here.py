"""Does on this machine what a running server does for the commands: reads runs from the database or from files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.history.run_list import read_filter
from app.settings import read_settings
from app.wiring.services import open_services
from app.wiring.stores import open_stores
from app.workbench.cli.reading_runs import is_file
from app.workbench.compare import difference
from app.workbench.explain import failures, trace
from app.workbench.explain.whatif import WhatIf
from app.workbench.explain.why import explain_run
from app.workbench.replay.bundle import MAX_FILE, Bundle, read_bundle, write_bundle
from app.workbench.replay.saved_run import SavedRun
from domain.errors import InputError
from domain.scope import Scope


async def read(target: str, workspace: str) -> SavedRun:
    """Read a run, which is named by its id or a file."""
    if is_file(target):
        return open_file(Path(target)).run
    async with open_services(read_settings()) as services:
        return await services.make_debugger().read(Scope(workspace), target)


async def explain(target: str, workspace: str) -> dict[str, Any]:
    """Return the decisive facts of a run."""
    return explain_run(await read(target, workspace))


async def trace_run(target: str, workspace: str) -> trace.Trace:
    """Return what happened in a run."""
    return trace.trace(await read(target, workspace))


async def diff(one: str, other: str, workspace: str) -> difference.RunDifference:
    """Compare two runs."""
    return difference.diff(await read(one, workspace), await read(other, workspace))


async def group_failures(workspace: str, since: str) -> failures.Failures:
    """Group the runs that did not go well."""
    async with open_stores(read_settings()) as stores:
        return await failures.group_failures(stores.runs, Scope(workspace), read_filter(since))


async def try_variants(target: str, workspace: str, sets: Sequence[Mapping[str, Any]], *, models: bool) -> WhatIf:
    """Try what would have changed a run's end."""
    async with open_services(read_settings()) as services:
        return await services.make_debugger().try_variants(Scope(workspace), target, sets=sets, models=models)


async def export(run_id: str, workspace: str) -> bytes:
    """Return a run as a file."""
    return write_bundle(await read(run_id, workspace))


def open_file(path: Path) -> Bundle:
    """Read a file that `askgraph export` wrote. Raises `InputError` and `StateError`."""
    try:
        if not path.is_file():
            raise InputError(f"There is no file {str(path)!r}.")
        with path.open("rb") as file:
            return read_bundle(file.read(MAX_FILE + 1))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
