"""Shows the events of a run, for `ask` and `replay`."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from rich.markup import escape

from app.api.descriptions import describe_answer
from app.cli.running import print_json
from app.cli.terminal import err, out
from domain.documents import Citation, name_place
from domain.events import Compared, Event, data_of


async def show_events(events: AsyncGenerator[Event], *, as_json: bool) -> int:
    """Print a run's answer as it is written, or as JSON at its end, and return the exit code.

    The code is 1 if the run failed, or if a strict replay differs from its recording.
    """
    async with aclosing(events) as open_events:
        return await (_print_as_json if as_json else print_events)(open_events)


async def _print_as_json(events: AsyncIterator[Event]) -> int:
    seen = [event async for event in events]
    ended = seen[-1]
    compared = next((event for event in seen if event["type"] == "comparison"), None)
    if ended["type"] == "done":
        print_json(describe_answer(ended, seen))
    else:
        error = {"error": data_of(ended)}
        print_json(error | ({"comparison": data_of(compared)} if compared else {}))
    return int(ended["type"] == "error" if compared is None else not compared["identical"])


async def print_events(events: AsyncIterator[Event]) -> int:
    """Print the answer as it is written, then its sources. Return the exit code."""
    compared: Compared | None = None
    async for event in events:
        match event["type"]:
            case "thinking":
                if err.is_terminal:
                    err.print(f"[dim]{event['step']} …[/dim]")
            case "content":
                sys.stdout.write(event["token"])
                sys.stdout.flush()
            case "correction":
                out.print(f"\n\n[yellow]Corrected:[/yellow] {escape(event['reason'])}\n\n{escape(event['answer'])}")
            case "comparison":
                compared = event
            case "error":
                err.print(f"\n[red]{escape(event['message'])}[/red]")
                return _print_comparison(compared) if compared else 1
            case "done":
                print()
                _print_citations(event["citations"])
                for warning in event["warnings"]:
                    err.print(f"[yellow]{escape(warning)}[/yellow]")
                cached = ", from the cache" if event["cached"] else ""
                out.print(
                    f"\n[dim]confidence {event['confidence']:.2f} · {event['timings']['total']:.0f} ms{cached} · "
                    f"thread {event['thread_id']} · run {event['run_id']}[/dim]"
                )
    return _print_comparison(compared) if compared else 0


def _print_comparison(compared: Compared) -> int:
    """Say how a strict replay compares with its recording. Return the exit code."""
    if compared["identical"]:
        out.print(f"Identical to run {compared['run_id']}: every event and the final state.")
        return 0
    err.print(f"[red]Differs from the recording of run {compared['run_id']}:[/red]")
    for line in compared["differences"]:
        err.print(escape(line))
    return 1


def _print_citations(citations: Sequence[Citation]) -> None:
    if citations:
        out.print("\n[bold]Sources[/bold]")
    for citation in sorted(citations, key=lambda c: c["marker"]):
        where = name_place(citation["title"], citation["heading_path"])
        page = f", page {citation['page']}" if citation["page"] else ""
        snippet = " ".join(citation["text"].split())
        out.print(f"  \\[{citation['marker']}] [bold]{escape(where)}[/bold]{page}\n      [dim]{escape(snippet)}[/dim]")
