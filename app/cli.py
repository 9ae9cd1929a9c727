"""The command line. Each command opens the same services as the server, so it works with or without one running."""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import uvloop

from domain.errors import AskgraphError, InputError, NotFound, StateError

if TYPE_CHECKING:
    from app.services import Services
    from domain.events import Event

cli = typer.Typer(
    name="askgraph",
    help="Answer questions from your documents, with sources. Everything runs on this machine unless told otherwise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _check_workspace(name: str) -> str:
    from app.api.schemas import WorkspaceId

    return _check_name("workspace", name, WorkspaceId)


def _check_optional_workspace(name: str | None) -> str | None:
    return name if name is None else _check_workspace(name)


def _check_thread(name: str | None) -> str | None:
    from app.api.schemas import ThreadId

    return name if name is None else _check_name("thread", name, ThreadId)


def _check_name(kind: str, name: str, rule: Any) -> str:
    """The same rule as over HTTP, so that what one has named the other can reach."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(rule).validate_python(name)
    except ValidationError as error:
        _fail(InputError(f"{name!r} cannot be the name of a {kind}: {error.errors()[0]['msg']}."))
    return name


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"askgraph {version('askgraph')}")
        raise typer.Exit


WorkspaceOption = Annotated[
    str, typer.Option("--workspace", "-w", help="The workspace (tenant).", callback=_check_workspace)
]
ThreadArgument = Annotated[str, typer.Argument(help="The thread's id.", callback=_check_thread)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@cli.callback()
def askgraph(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """What all commands share."""


@cli.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8000,
) -> None:
    """Serve the page and the API."""
    from app.server import run_server

    _configure_logging(logging.INFO)
    _run(run_server(host, port))


@cli.command()
def worker(
    concurrency: Annotated[int, typer.Option(help="Runs that are executed at once.", min=1)] = 8,
) -> None:
    """Execute runs and read uploads for the servers on the same database: those that wait, and those whose server has
    died. Ctrl-C lets what runs end, or leaves it to others."""
    from app.worker import run_worker

    _configure_logging(logging.INFO)
    _run(run_worker(concurrency))


@cli.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    mode: Annotated[
        str, typer.Option("--mode", "-m", help="fast, standard, thorough, or one of your own.")
    ] = "standard",
    document: Annotated[list[str] | None, typer.Option(help="Answer from this document only; repeatable.")] = None,
    thread: Annotated[str | None, typer.Option(help="Continue this conversation.", callback=_check_thread)] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Ask a question and read the answer as it is written, with its sources."""

    async def work(services: "Services") -> int:
        from app.runs.turns import Ask, Turns
        from domain.scope import Scope

        async with Turns(services) as turns:
            events = await turns.ask(
                Ask(
                    question=question,
                    scope=Scope.within(workspace, document or None),
                    thread_id=thread,
                    mode=mode,
                )
            )
            return await _show(events, as_json)

    _run(_with_services(work))


@cli.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders: Markdown, text, HTML, PDF, DOCX.")],
    background: Annotated[
        bool, typer.Option("--background", help="Only hand the files over: a server or worker reads them later.")
    ] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Add documents, or bring them up to date. The same content twice changes nothing."""

    async def queue(services: "Services") -> int:
        from app.descriptions import describe_handed_over
        from app.ingest.background import hand_over
        from app.terminal import print_handed_over

        max_bytes = services.settings.max_document_mb * 1_000_000
        handed = await hand_over(services.ingestions, workspace, paths, max_bytes=max_bytes)
        if as_json:
            print(json.dumps(describe_handed_over(handed), ensure_ascii=False))
        else:
            print_handed_over(handed, workspace)
        return 1 if handed.refused else 0

    async def work(services: "Services") -> int:
        from app.descriptions import describe_ingest
        from app.terminal import print_ingest, show_progress

        with show_progress(enabled=not as_json) as progress:
            report = await services.ingestion.add_paths(workspace, paths, progress=progress)
            await services.wait_for_indexes()
        if as_json:
            print(json.dumps(describe_ingest(report), ensure_ascii=False))
        else:
            print_ingest(report)
        return 1 if report.failed else 0

    _run(_with_services(queue if background else work))


@cli.command()
def ingestions(
    limit: Annotated[int, typer.Option(help="Only so many of the latest.", min=1)] = 100,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List files that were handed over to be read later: those that wait or are being read, and what became of the
    others."""

    async def work(services: "Services") -> int:
        from app.descriptions import describe_ingestion
        from app.terminal import print_ingestions

        found = await services.ingestions.list(workspace, limit)
        if as_json:
            print(json.dumps([describe_ingestion(status) for status in found], ensure_ascii=False))
        else:
            print_ingestions(found)
        return 0

    _run(_with_services(work))


@cli.command()
def documents(workspace: WorkspaceOption = "default", as_json: JsonOption = False) -> None:
    """List the documents."""

    async def work(services: "Services") -> int:
        from app.descriptions import describe_document
        from app.terminal import print_documents

        found = await services.documents.list(workspace)
        if as_json:
            print(json.dumps([describe_document(d) for d in found], ensure_ascii=False))
        else:
            print_documents(found)
        return 0

    _run(_with_services(work))


@cli.command()
def delete(
    document_ids: Annotated[list[str], typer.Argument(help="Ids, as `askgraph documents` lists them.")],
    workspace: WorkspaceOption = "default",
) -> None:
    """Remove documents, their chunks, and the answers cached from them."""

    async def work(services: "Services") -> int:
        missing = [d for d in document_ids if not await services.ingestion.delete(workspace, d)]
        for document_id in missing:
            print(f"askgraph: there is no document {document_id!r} in this workspace.", file=sys.stderr)
        return 1 if missing else 0

    _run(_with_services(work))


@cli.command()
def reindex(
    embeddings: Annotated[str, typer.Option(help="local, openai:MODEL or openai:MODEL@DIMENSION.")],
    as_json: JsonOption = False,
) -> None:
    """Embed all documents of all workspaces anew, with another model. Questions are answered and documents are added
    meanwhile; what an interrupted run has done is not done again."""
    from app.settings import read_settings

    async def work() -> int:
        from app.descriptions import describe_reindexing
        from app.ingest.reindexing import reindex as embed_anew
        from app.services import open_reindexing
        from app.terminal import print_reindexing, show_work

        async with open_reindexing(settings, settings.embeddings) as (index, embedder):
            with show_work() as progress:
                report = await embed_anew(index, embedder, progress)
        if as_json:
            print(json.dumps(describe_reindexing(report), ensure_ascii=False))
        else:
            print_reindexing(report, embeddings)
        return 0

    _configure_logging(logging.WARNING)
    try:
        settings = read_settings(embeddings=embeddings)
    except AskgraphError as error:
        _fail(error)
    _run(work())


@cli.command()
def history(
    thread: ThreadArgument,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show every saved step of a thread: its node, what it changed, its time, its checkpoint."""

    async def work(services: "Services") -> int:
        from app.runs.history import read_history
        from app.terminal import print_history

        steps = await read_history(services, workspace, thread)
        if as_json:
            print(json.dumps({"thread_id": thread, "steps": steps}, ensure_ascii=False))
        else:
            print_history(steps)
        return 0

    _run(_with_services(work))


@cli.command()
def replay(
    target: Annotated[
        str, typer.Argument(metavar="RUN|THREAD", help="A run's id, or a thread's.", callback=_check_thread)
    ],
    checkpoint: Annotated[
        str | None,
        typer.Option("--from", help="The checkpoint to run on from (see `askgraph history`). A run has a start."),
    ] = None,
    tape: Annotated[
        Literal["off", "strict", "fill"],
        typer.Option(
            help="off: call everything anew. strict: answer every call from the run's tape, store nothing, and compare "
            "with what was recorded. fill: call only what is not on the tape."
        ),
    ] = "off",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change the state first: key=value, for example profile.rerank.keep=3."),
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", "-m", help="Run on in another mode.")] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Run a run again, or on from a saved state, changed or not, as a branch in a thread of its own.

    On its tape alone (--tape strict) nothing is called. The exit code is 0 where events and final state are those that
    were recorded, 1 where they are not.
    """

    async def work(services: "Services") -> int:
        from app.runs.replay import Replay, run_replay
        from app.runs.turns import Turns

        is_run = checkpoint is None or await services.runs.get(workspace, target) is not None
        wanted = Replay(
            workspace,
            thread_id=None if is_run else target,
            checkpoint_id=checkpoint,
            run_id=target if is_run else None,
            changes=_parse_changes(changes or []),
            mode=mode,
            tape=tape,
        )
        async with Turns(services) as turns:
            return await _show(await run_replay(services, turns, wanted), as_json)

    _run(_with_services(work))


@cli.command()
def costs(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    by: Annotated[Literal["mode", "node", "model", "workspace"], typer.Option(help="What to tell apart.")] = "mode",
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Of this workspace only.", callback=_check_optional_workspace),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what answering has cost: runs, calls, tokens, dollars. Answers from the cache cost nothing."""
    from app.runs.costs import parse_since, read_costs

    try:
        start = parse_since(since)
    except InputError as error:
        _fail(error)

    async def work(services: "Services") -> int:
        from app.terminal import print_costs

        report = await read_costs(services.runs, workspace, start, by)
        if as_json:
            print(json.dumps(report, ensure_ascii=False))
        else:
            print_costs(report)
        return 0

    _run(_with_services(work))


@cli.command()
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            help="Delete threads whose last run began longer ago than this: 30d, 12h, 8w. Unset: what "
            "ASKGRAPH_RETENTION says."
        ),
    ] = None,
    keep_steps_of: Annotated[
        int | None,
        typer.Option(
            help="Keep every step of so many of a thread's latest runs; of older ones the final state. Unset: "
            "ASKGRAPH_KEEP_STEPS_OF.",
            min=1,
        ),
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Of this workspace only.", callback=_check_optional_workspace),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing; say what would go.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete conversations that are kept no longer: states, runs and tapes; and ingestions that ended as long ago. What
    runs have cost stays known, and documents stay.

    Where no workspace is named, those that ASKGRAPH_RETENTION names keep at least what it says. Threads in which a run
    is not over stay. Questions are answered meanwhile.
    """
    from app.runs.retention import override_policy, read_policy
    from app.settings import read_settings

    try:
        policy = override_policy(read_policy(read_settings()), older_than, keep_steps_of, workspace)
    except AskgraphError as error:
        _fail(error)

    async def work(services: "Services") -> int:
        from dataclasses import asdict

        from app.runs.retention import prune as delete
        from app.terminal import print_pruned

        pruned = await delete(services.retention, policy, workspace_id=workspace, dry_run=dry_run)
        if as_json:
            print(json.dumps(asdict(pruned) | {"dry_run": dry_run}))
        else:
            print_pruned(pruned, dry_run=dry_run)
        return 0

    _run(_with_services(work))


cache = typer.Typer(no_args_is_help=True, help="Look at stored answers.")
cli.add_typer(cache, name="cache")


@cache.command("explain")
def explain_cached(
    question: Annotated[str, typer.Argument(help="The question, as it would be asked.")],
    mode: Annotated[str, typer.Option("--mode", "-m", help="The mode it would be asked in.")] = "standard",
    document: Annotated[list[str] | None, typer.Option(help="Answer from this document only; repeatable.")] = None,
    thread: Annotated[str | None, typer.Option(help="Continue this conversation.", callback=_check_thread)] = None,
    workspace: WorkspaceOption = "default",
) -> None:
    """Say whether a question would find a stored answer; and where not, what differs from the nearest one."""

    async def work(services: "Services") -> int:
        from app.runs.explaining import explain
        from app.runs.turns import Ask
        from domain.scope import Scope

        asked = Ask(question, Scope.within(workspace, document or None), thread, mode)
        found = await explain(services, asked)
        print(json.dumps(found, ensure_ascii=False, indent=2, default=str))
        return 0

    _run(_with_services(work))


@cache.command("stats")
def count_cached(workspace: WorkspaceOption = "default") -> None:
    """Count the workspace's questions that found their answer stored, that did not, and that shared another's run."""

    async def work(services: "Services") -> int:
        from app.terminal import count

        counts = await services.answers.count(workspace)
        hits, misses = count(counts.hits, "hit"), count(counts.misses, "miss", "misses")
        print(f"{hits}, {misses}, of which {counts.shared} shared a run")
        return 0

    _run(_with_services(work))


doctor = typer.Typer(no_args_is_help=True, help="Check what is stored.")
cli.add_typer(doctor, name="doctor")


@doctor.command("states")
def examine_states(
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Of this workspace only.", callback=_check_optional_workspace),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Load every saved state under today's types, and name those that cannot be run on from. The exit code is 1 where
    there are any."""

    async def work(services: "Services") -> int:
        from app.runs.examination import describe_examination, examine_states
        from app.terminal import print_examination, show_progress

        with show_progress(enabled=not as_json) as progress:
            found = await examine_states(services, workspace, progress)
        if as_json:
            print(json.dumps(describe_examination(found), ensure_ascii=False))
        else:
            print_examination(found)
        return 1 if found.failed else 0

    _run(_with_services(work))


@cli.command("eval")
def evaluate(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET...", help="Folders of sets, their names in --bench, or a queries.jsonl of your own."
        ),
    ],
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", "-p", help="A mode to ask in; two are compared. [default: standard]"),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Ask only the first questions of each set.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("eval-results"),
    bench: Annotated[
        Path, typer.Option(envvar="ASKGRAPH_BENCH", help="The folder in which sets are found by name.")
    ] = Path("../shared/bench"),
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Ask this workspace instead of one made from the set's corpus."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the set's workspace, so that the next run is quick.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask again what an interrupted run has asked already.")
    ] = False,
    upload: Annotated[bool, typer.Option("--upload", help="Send sets and results to LangSmith.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure how well questions are answered: finding, answering, abstaining, citing, routing, verifying."""
    from app.evaluation.report import check_folder
    from app.evaluation.sets import read_sets
    from app.settings import read_modes, read_settings
    from domain.errors import UnknownMode

    names = list(dict.fromkeys(profile or ["standard"]))
    try:
        if workspace is not None:
            _check_workspace(workspace)
        modes = read_modes(read_settings())
        if unknown := [name for name in names if name not in modes]:
            raise UnknownMode(f"There is no profile {unknown[0]!r}. There are: {', '.join(modes)}.")
        wanted = read_sets(sets, bench, workspace=workspace, limit=limit)
        if upload:
            from app.adapters.tracing.experiments import check_langsmith

            check_langsmith()
        check_folder(out)
    except AskgraphError as error:
        _fail(error)

    async def work(services: "Services") -> int:
        from app.evaluation.evaluation import Options, evaluate
        from app.evaluation.report import list_metrics, write_report
        from app.terminal import count, print_evaluation, show_work

        options = Options(out, workspace, keep, fresh)
        with show_work() as progress:
            evaluated = await evaluate(services, wanted, [modes[name] for name in names], options, progress)
        for each in evaluated:
            for result in each.results:
                if result.resumed:
                    print(
                        f"{each.set.name}, {result.profile}: {count(result.resumed, 'answer')} of a run that was "
                        "interrupted taken over; --fresh asks again.",
                        file=sys.stderr,
                    )
            if each.kept is not None:
                print(f"{each.set.name}: its documents are kept in the workspace {each.kept}.", file=sys.stderr)
        page = write_report(evaluated, out, services.fingerprint)
        if upload:
            from app.evaluation.uploading import upload as send

            for name in await asyncio.to_thread(send, evaluated, services.fingerprint):
                print(f"Uploaded as the experiment {name}.", file=sys.stderr)
        if as_json:
            print(json.dumps(list_metrics(evaluated), ensure_ascii=False))
        else:
            print_evaluation(evaluated, page)
        return 0

    _run(_with_services(work))


@cli.command()
def graph(
    format: Annotated[Literal["mermaid", "ascii", "png"], typer.Option(help="How to draw it.")] = "ascii",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Draw the graph as it runs, without a network."""
    from app.drawing import draw
    from graphs.answer import build_answer_graph

    if format == "png" and output is None and sys.stdout.isatty():
        _fail(InputError("A PNG cannot be shown here. Name a file: --output graph.png"))
    picture = draw(build_answer_graph(), format)
    data = picture if isinstance(picture, bytes) else picture.encode()
    if output is not None:
        output.write_bytes(data)
    else:
        sys.stdout.buffer.write(data if format == "png" else data.rstrip(b"\n") + b"\n")


def main() -> None:
    """The entry point."""
    cli()


def _run(work: Coroutine[Any, Any, int]) -> None:
    """Run a command to its exit code, with an error of ours said in one line."""
    try:
        code = uvloop.run(work)
    except AskgraphError as error:
        _fail(error)
    except KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def _fail(error: AskgraphError) -> None:
    print(f"askgraph: {error.message}", file=sys.stderr)
    raise typer.Exit(2 if isinstance(error, InputError | NotFound) else 1)


async def _with_services(work: Callable[["Services"], Awaitable[int]]) -> int:
    from app.services import open_services
    from app.settings import read_settings

    _configure_logging(logging.WARNING)
    async with open_services(read_settings()) as services:
        return await work(services)


async def _show(events: AsyncGenerator["Event"], as_json: bool) -> int:
    """Follow a turn on the terminal, or print it as JSON at its end."""
    if not as_json:
        from app.terminal import print_events

        async with aclosing(events) as open_events:
            return await print_events(open_events)
    from app.descriptions import describe_answer
    from app.runs.turns import collect
    from domain.events import data_of

    ended, seen = await collect(events)
    compared = next((event for event in seen if event["type"] == "comparison"), None)
    if ended["type"] == "error":
        error = {"error": data_of(ended)}
        print(json.dumps(error | ({"comparison": data_of(compared)} if compared else {}), ensure_ascii=False))
    else:
        print(json.dumps(describe_answer(ended, seen), ensure_ascii=False))
    return int(ended["type"] == "error" if compared is None else not compared["identical"])


def _parse_changes(changes: list[str]) -> dict[str, str]:
    parsed = {}
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator or not key:
            raise StateError(f"--set takes key=value, not {change!r}.")
        parsed[key.strip()] = value
    return parsed


def _configure_logging(level: int) -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("askgraph").setLevel(level)


if __name__ == "__main__":
    main()
