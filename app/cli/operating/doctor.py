import typer

from app.cli.support.options import AnyWorkspaceOption, JsonOption, new_cli
from app.cli.support.running import as_command, print_result, run
from app.history import state_check
from app.history.state_check import StateCheck, describe_state_check
from app.settings import read_settings
from app.support.terminal import count, err, escape, out, show_progress
from app.wiring.examination import examine
from app.wiring.services import open_services
from domain.health import Diagnosis
from domain.state import STATE_VERSION

cli = new_cli(invoke_without_command=True)


@cli.callback()
def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Check a deployment: home, disk, database, cache, identity provider and models; or what is stored.

    Changes nothing. The exit code is 1 if there is something to do.
    """
    if context.invoked_subcommand is not None:
        return

    async def work() -> int:
        found = [diagnosis async for diagnosis in examine(read_settings())]
        print_result(print_diagnoses, found, as_json=as_json)
        return 1 if any(diagnosis.remedy for diagnosis in found) else 0

    run(work())


def print_diagnoses(found: list[Diagnosis]) -> None:
    """Print what was found of each part, and what to do."""
    for diagnosis in found:
        mark = "[red]![/red]" if diagnosis.remedy else "[green]✓[/green]"
        out.print(f"{mark} {escape(diagnosis.part):<16} {escape(diagnosis.found)}")
        if diagnosis.remedy:
            out.print(f"  {'':<16} [bold]{escape(diagnosis.remedy)}[/bold]")


@cli.command("states")
@as_command
async def check_states(workspace: AnyWorkspaceOption = None, as_json: JsonOption = False) -> int:
    """Load every saved state and list those that this version cannot continue from.

    The exit code is 1 if there are any.
    """
    async with open_services(read_settings()) as services:
        with show_progress(transient=True, log=False) as progress:
            found = await state_check.check_states(services.runs.saved_states, workspace, progress)
        print_result(print_state_check, found, as_json=as_json, describe=describe_state_check)
        return 1 if found.failed else 0


def print_state_check(found: StateCheck) -> None:
    """Print the number of states per version, the states that fail, and what to do about them."""
    for version, states in sorted(found.versions.items()):
        figure, _, named = count(states, "state").partition(" ")
        out.print(f"version {version}{' (current)' if version == STATE_VERSION else '':<10} {figure:>10} {named}")
    if not found.failed:
        all_of_them = "The one state" if found.states == 1 else f"All {found.states:,} states"
        out.print(f"{all_of_them} can be continued from.")
        return
    for failure in found.failures:
        err.print(
            f"[red]{'fails' if failure.readable else 'damaged'}[/red] thread {escape(failure.thread_id)} "
            f"checkpoint {failure.checkpoint_id} (version {failure.version}): "
            f"{escape(failure.field)}: {escape(failure.why)}"
        )
    if found.failed > len(found.failures):
        err.print(f"… and {found.failed - len(found.failures):,} more.")
    err.print(f"[red]{found.failed:,} of {count(found.states, 'state')} cannot be continued from.[/red]")
    if any(failure.readable for failure in found.failures):
        err.print("States that fail: give the field a value, askgraph replay THREAD --from CHECKPOINT --set")
        err.print("FIELD=VALUE; or use the version that saved them.")
    if not all(failure.readable for failure in found.failures):
        err.print("Damaged states: restore the rows of their threads in the table state_packs from a backup; or delete")
        err.print("the threads.")
