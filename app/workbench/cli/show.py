from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import fail, print_result
from app.support.terminal import escape, new_table, out, print_table, shorten
from app.workbench.cli.targets import show_cost, show_ms, show_run
from domain.errors import InputError

if TYPE_CHECKING:
    from app.workbench.replay.saved_run import SavedRun

_CANDIDATES = 10
"""Candidates shown unless all are wanted."""

cli = new_cli()


@cli.command()
def show(
    run_id: Annotated[
        str, typer.Argument(help="The run's id, or a file that `askgraph export` wrote.", metavar="RUN|FILE")
    ],
    node: Annotated[str | None, typer.Option("--step", help="Only this step, such as rerank or rerank@2.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All candidates, and every call.")] = False,
    prompts: Annotated[bool, typer.Option("--prompts", help="Prompts and replies in full.")] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show what happened in a run, step by step: changes, calls, candidates, verdicts."""

    def trace_file(run: "SavedRun") -> Mapping[str, Any]:
        from app.workbench.explain.trace import trace

        return trace(run)

    printer = partial(print_trace, node=node, everything=everything, prompts=prompts)
    show_run(
        run_id,
        lambda server: server.get("runs", run_id, "trace", workspace=workspace),
        trace_file,
        partial(print_result, printer, as_json=as_json),
    )


def print_trace(
    traced: Mapping[str, Any], *, node: str | None = None, everything: bool = False, prompts: bool = False
) -> None:
    """Print a trace, which is an `app.workbench.explain.trace.Trace`."""
    ended = traced["error"] or traced["outcome"] or "no outcome"
    out.print(f"[bold]{escape(traced['question'])}[/bold]")
    by = f" by {traced['answered_by']}" if traced["answered_by"] else ""
    out.print(
        f"{escape(ended + by)} in mode {escape(traced['mode'])}, "
        f"confidence {traced['confidence']:.2f}, {show_ms(traced['ms']) or 'no time'}, {show_cost(traced)}"
    )
    out.print(f"path: {' → '.join(traced['path'])}")
    if not traced["taped"]:
        out.print(f"[yellow]Without calls and snippets: {escape(traced['untaped'])}[/yellow]")
    shown = [step for step in traced["steps"] if node is None or node in (step["name"], step["node"])]
    if not shown and node is not None:
        fail(
            InputError(f"The run has no step {node!r}. It has: {', '.join(step['name'] for step in traced['steps'])}.")
        )
    for step in shown:
        _print_step(step, everything=everything, prompts=prompts)


def _print_step(step: Mapping[str, Any], *, everything: bool, prompts: bool) -> None:
    spent = [
        f"{used['model']} {used['input_tokens']}+{used['output_tokens']} tokens {show_cost(used)}"
        f"{', {cached_tokens} cached'.format(**used) if used.get('cached_tokens') else ''}"
        f"{' (estimated)' if used.get('estimated') else ''}"
        for used in step["usage"]
    ]
    facts = [show_ms(step["ms"]), *spent]
    following = ", ".join(step["next"]) or "end"
    details = " · ".join(escape(fact) for fact in facts if fact)
    out.print(f"\n[bold cyan]{step['name']}[/bold cyan] {details} → {following} [dim]{step['checkpoint_id']}[/dim]")
    for change in step["changed"]:
        out.print(f"  {escape(change['field'])}: {escape(change['text'])}")
    for warning in step["warnings"]:
        out.print(f"  [yellow]{escape(warning)}[/yellow]")
    if step["grade"]:
        out.print(f"  {escape(step['grade']['text'])}")
    left_out = [each for each in step["candidates"] if each["fused"]["rank"] is None]
    for heading, found in (("", [each for each in step["candidates"] if each not in left_out]), ("left out", left_out)):
        if found:
            out.print(*[f"  {heading}:"] if heading else [], end="\n" if heading else "")
            _print_candidates(found if everything else found[:_CANDIDATES])
            if not everything and len(found) > _CANDIDATES:
                out.print(f"  and {len(found) - _CANDIDATES} more (--all)")
    for claim in step["claims"]:
        reason = f": {escape(claim['reason'])}" if claim["reason"] else ""
        out.print(f"  {claim['verdict']} {claim['score']:.2f} “{escape(claim['text'])}”{reason}")
    for call in step["calls"]:
        if call["messages"] or everything:
            _print_call(call, prompts=prompts)


def _print_candidates(candidates: Sequence[Mapping[str, Any]]) -> None:
    figures = ("  place", "moved", "dense", "words", "relevance")
    table = new_table(*figures, "passage", "became", right=figures)
    for each in candidates:
        place = each["rerank"]["rank"] or each["fused"]["rank"] or "-"
        moved = "" if each["rerank"]["rank"] is None else f"{each['moved']:+d}" if each["moved"] else "="
        became = each["dropped"] or ("" if each["source"] is None else f"source {each['source']}, cited")
        name = shorten(f"{each['title'] or each['chunk_id']}: {each['snippet'] or ''}", 70)
        table.add_row(
            str(place),
            moved,
            _show_leg(each["dense"]),
            _show_leg(each["lexical"]),
            "-" if each["rerank"]["score"] is None else f"{each['rerank']['score']:.2f}",
            escape(name),
            escape(became),
        )
    print_table(table)


def _show_leg(leg: Mapping[str, Any]) -> str:
    if leg["score"] is None:
        return "-"
    return f"{leg['score']:.2f}" + (f" #{leg['rank']}" if leg["rank"] else "")


def _print_call(call: Mapping[str, Any], *, prompts: bool) -> None:
    failed = f" [red]{escape(call['error'])}[/red]" if call["error"] else " [red]cut off[/red]" if call["cut"] else ""
    out.print(f"  [dim]{escape(call['port'])} {call['method']}[/dim] {escape(call['summary'])}{failed}")
    for number, failure in enumerate(call["failures"], 1):
        out.print(f"    [dim]attempt {number}:[/dim] {escape(failure)}")
    for message in call["messages"]:
        text = message["content"] if prompts else shorten(message["content"], 160)
        out.print(f"    [dim]{message['role']}:[/dim] {escape(text, lines=True)}")
    if call["messages"]:
        reply = call["reply"] if prompts else shorten(call["reply"], 160)
        out.print(f"    [dim]reply:[/dim] {escape(reply, lines=True)}")
