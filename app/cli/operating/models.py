from typing import Annotated

import typer

from app.adapters.chat.discovery import PORTS, ModelServer, find_servers, locate
from app.adapters.chat.providers import PACKAGES, split_name
from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import as_command, print_json, print_result
from app.model_choice import FILE, ModelChoice
from app.settings import Settings, read_settings
from app.support.terminal import err, escape, out
from app.wiring.model_trial import Attempt, Trial, try_model
from domain.errors import InputError
from domain.model_names import NO_MODEL

cli = new_cli(invoke_without_command=True)


@cli.callback()
def models(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show the language models in use and those found on this machine, or choose one."""
    if context.invoked_subcommand is None:
        _show(as_json=as_json)


@as_command
async def _show(*, as_json: bool) -> int:
    settings = read_settings()
    found = await find_servers()
    tiers = {"writes": settings.model_large, "judges": settings.model_small, "verifies": settings.model_judge}
    used = tiers if any(settings.providers.values()) else {}
    if as_json:
        print_json({"used": used, "address": settings.openai_base_url, "found": found})
    else:
        _print_models(settings, used, found)
    return 0


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
        ModelChoice(model_large="none", model_small="none", model_judge="none").keep(settings.home)
        err.print("Answers are quotes from the next start on.")
        return 0
    kind, _, model = name.partition(":")
    if kind in PORTS and model:
        name, address = model, address or locate(kind)
    key = typer.prompt("Key", hide_input=True, err=True) if with_key else None
    provider = split_name(name)[0]
    if address and provider in PACKAGES:
        raise InputError(f"--address names a server that speaks OpenAI's protocol; {provider} has its own.")
    access = {f"{provider}_api_key": key, "openai_base_url": address}
    # As the choice will be read: an address that is named here gets no key from elsewhere.
    given = ModelChoice(model_large=name, model_small="none", model_judge="none", **access).as_settings()
    with err.status(f"Asking {escape(name)} three small questions"):
        trial = await try_model(read_settings(home=settings.home, **given), name)
    if trial.writes.problem is None:
        chosen = trial.choose(name, **access)
        chosen.keep(settings.home)
    print_result(_print_trial, trial, as_json=as_json)
    if trial.writes.problem is not None:
        err.print(f"[red]{escape(name)} was not chosen.[/red]")
        return 1
    judging = "judges too" if chosen.model_small == name else "judging is done on this machine"
    err.print(f"{escape(name)} writes, and {judging}, from the next start on; kept in {settings.home / FILE}.")
    if read_settings().model_large != name:
        err.print("[yellow]This environment names a model by ASKGRAPH_MODEL…, which goes before it.[/yellow]")
    return 0


def _print_models(settings: Settings, used: dict[str, str], found: list[ModelServer]) -> None:
    if not used:
        out.print("No language model: answers are quotes.")
    for does, name in used.items():
        out.print(f"{does:<9} {escape(name if name not in NO_MODEL else 'none: done on this machine')}")
    for server in found:
        out.print(f"\n{server.kind} at {server.address}")
        for name in server.models:
            out.print(f"  askgraph models use {escape(f'{server.kind}:{name}')}")
    if not found:
        ports = ", ".join(f"{kind} ({port})" for kind, port in PORTS.items())
        out.print(f"\nNo server of models listens on this machine where they usually do: {ports}.")
    out.print("\nAnother: askgraph models use NAME --address URL --with-key")


def _print_trial(trial: Trial) -> None:
    attempts = {"writes": trial.writes, "judges": trial.judges, "calls functions": trial.calls}
    for does, attempt in attempts.items():
        out.print(f"{_mark(attempt)} {does:<16} {attempt.seconds:.1f} s {escape(attempt.problem or '')}".rstrip())
    if trial.writes.problem is None and not trial.cites:
        out.print("! It named no source: askgraph looks for the sources of its statements.")


def _mark(attempt: Attempt) -> str:
    return "[red]![/red]" if attempt.problem else "[green]✓[/green]"
