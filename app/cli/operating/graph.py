import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import new_cli
from app.cli.support.running import write_file
from app.drawing.diagram import read_graph
from app.drawing.drawing import Format, draw
from graphs.answer import build_answer_graph

cli = new_cli()


@cli.command()
def graph(
    format: Annotated[Format, typer.Option(help="How to draw it.")] = "ascii",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Draw the graph. This needs no network."""
    data = draw(read_graph(build_answer_graph()), format)
    if output is not None:
        write_file(output, data)
    else:
        sys.stdout.buffer.write(data.rstrip(b"\n") + b"\n")
