from typing import Annotated

import typer

from app.adapters.chat.discovery import PORTS
from app.chosen_models import FILE, ChosenModels
from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import as_command, print_result
from app.settings import read_settings
from app.support.terminal import err, escape, out
from app.wiring.model_chooser import ModelChooser
from domain.model_names import NO_MODEL, KnownModels, Trial

cli = new_cli(invoke_without_command=True)


@cli.callback()
def models(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show the language models in use and those found on this machine, or choose one."""
    if context.invoked_subcommand is None:
        _show(as_json=as_json)


@as_command
async def _show(*, as_json: bool) -> int:
    return print_result(_print_models, await ModelChooser(read_settings()).describe(), as_json=as_json)


@cli.command()
@as_command
async def use(
    name: Annotated[str, typer.Argument(help="Such as ollama:qwen3:8b, gpt-5-mini or anthropic:NAME; none for none.")],
    address: Annotated[
        str | None, typer.Option("--address", metavar="URL", help="Of a server that speaks OpenAI's protocol.")
    ] = None,
    with_key: Annotated[bool, typer.Option("--with-key", help="Ask for the key, and keep it in the home.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Try a language model with three small questions, and answer with it from the next start on.

    Nothing is kept of a model that does not write. The exit code is 1 then.
    """
    settings = read_settings()
    if name in NO_MODEL:
        ChosenModels(model_large="none", model_small="none", model_judge="none").keep(settings.home)
        err.print("Answers are quotes from the next start on.")
        return 0
    key = typer.prompt("Key", hide_input=True, err=True) if with_key else None
    with err.status(f"Asking {escape(name)} three small questions"):
        trial = await ModelChooser(settings).try_model(name, address, key, keep=True, is_owner=True)
    print_result(_print_trial, trial, as_json=as_json)
    chosen = ChosenModels.read(settings.home)
    if trial.writes.problem is not None or chosen is None:
        err.print(f"[red]{escape(name)} was not chosen.[/red]")
        return 1
    judging = "judging is done on this machine" if chosen.model_small in NO_MODEL else "judges too"
    err.print(f"{escape(name)} writes, and {judging}, from the next start on; kept in {settings.home / FILE}.")
    if trial.writes.seconds > settings.model_timeout:
        waits = f"Its first answer took longer than the {settings.model_timeout:g} s that the service waits"
        err.print(f"[yellow]{waits}: set ASKGRAPH_MODEL_TIMEOUT, or keep the model loaded.[/yellow]")
    if read_settings().model_large != chosen.model_large:
        err.print("[yellow]This environment names a model by ASKGRAPH_MODEL…, which goes before it.[/yellow]")
    return 0


def _print_models(known: KnownModels) -> None:
    if not known.used:
        out.print("No language model: answers are quotes.")
    for does, name in known.used.items():
        out.print(f"{does:<9} {escape('none: done on this machine' if name in NO_MODEL else name)}")
    for server in known.found:
        out.print(f"\n{server.kind} at {server.address}")
        for name in server.models:
            out.print(f"  askgraph models use {escape(f'{server.kind}:{name}')}")
    if not known.found:
        ports = ", ".join(f"{kind} ({port})" for kind, port in PORTS.items())
        out.print(f"\nNo server of models listens on this machine where they usually do: {ports}.")
    out.print("\nAnother: askgraph models use NAME --address URL --with-key")


def _print_trial(trial: Trial) -> None:
    attempts = {"writes": trial.writes, "judges": trial.judges, "calls functions": trial.calls}
    for does, attempt in attempts.items():
        mark = "[red]![/red]" if attempt.problem else "[green]✓[/green]"
        out.print(f"{mark} {does:<16} {attempt.seconds:.1f} s {escape(attempt.problem or '')}".rstrip())
    if trial.writes.problem is None and not trial.cites:
        out.print(
            "! It named no source: askgraph looks for the sources of its statements. Answers of such models were as "
            "often useful as quotes without one."
        )
