from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import fail, print_json, run
from app.settings import read_settings
from app.support.terminal import count, escape, out
from app.wiring.offline import open_offline
from app.workbench.cli.here import open_file
from app.workbench.replay.bundle_replay import replay_strictly
from domain.errors import InputError

cli = new_cli()


@cli.command(name="test")
def repeat_files(
    paths: Annotated[list[Path], typer.Argument(help="Files that `askgraph export` wrote, or folders of them.")],
    as_json: JsonOption = False,
) -> None:
    """Repeat the runs in files strictly, and compare. Needs no service, no document and no language model.

    The exit code is 0 if every event and every final state is as it was recorded, else 1.
    """
    files = [file for path in paths for file in (sorted(path.rglob("*.askgraph")) if path.is_dir() else [path])]
    if not files:
        fail(InputError(f"There is no file *.askgraph in {', '.join(map(str, paths))}."))

    async def work() -> int:
        results = {}
        async with open_offline(read_settings()) as parts:
            for file in files:
                results[str(file)] = result = await replay_strictly(open_file(file), parts)
                if as_json:
                    continue
                mark = "[green]identical[/green]" if result.identical else "[red]differs[/red]"
                out.print(f"{mark} {escape(str(file))} [dim]{result.run_id}[/dim]")
                for line in [result.problem] if result.problem else result.differences:
                    out.print(f"  {escape(line)}")
        differing = sum(not result.identical for result in results.values())
        if as_json:
            print_json({file: asdict(result) for file, result in results.items()})
        else:
            out.print(f"{count(len(results), 'run')}, {differing} of them differ.")
        return 1 if differing else 0

    run(work(), needs_data=False)
