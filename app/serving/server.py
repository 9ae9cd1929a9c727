"""Runs the HTTP server: the socket, the sample library, the banner, and an orderly stop."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from ipaddress import ip_address
from types import FrameType

import uvicorn
from sse_starlette.sse import AppStatus

from app.answering.locally import answer_locally
from app.answering.manager import DRAIN_SECONDS, STEP_SECONDS
from app.ingest.parser_workers import DRAIN_SECONDS as PARSING_SECONDS
from app.samples import FOLDER
from app.serving.address import format_url, publish_address
from app.serving.application import make_app
from app.serving.protocol import LimitedProtocol
from app.serving.shutdown import end_in_time
from app.settings import Settings, find_mistyped, read_settings
from app.support.logs import configure_logs
from app.support.memory import give_back_memory, leave_what_is_open
from app.support.terminal import err, escape, out
from app.wiring.models import suggest_models
from app.wiring.services import Services, open_services
from domain.errors import ConfigurationError
from domain.health import ANSWERING, Finding, run_checks
from domain.profile import MODES
from domain.scope import Scope
from domain.text.dictionary import CORRECT_EVERYWHERE, read_dictionary
from nodes.context import Models

logger = logging.getLogger("askgraph.serving")

SAMPLE_QUESTION = "How many days of holiday does an employee have?"

END_SECONDS = int(DRAIN_SECONDS + 2 * STEP_SECONDS) + 1
"""Seconds after Ctrl-C until clients that still follow a run are cut off: as long as draining may take."""


Announce = Callable[[str, str], None]
"""Is told the address of the service and the token of the machine's owner."""


async def run_server(host: str, port: int, *, insecure: bool = False) -> int:
    """Serve until told to stop. Returns the exit code.

    Raises `ConfigurationError` where other machines could reach a service without keys, unless `insecure` says that
    they may.
    """
    settings = read_settings()
    configure_logs(settings.log_format)
    with _listen(host, port) as listener:
        await _serve(settings, listener, insecure=insecure)
    return 0


async def serve_owner(settings: Settings, announce: Announce) -> None:
    """Serve the program that has started this one, on a free loopback port, until it closes standard input. Calls
    `announce` with the address and the token of the machine's owner once the service answers."""
    configure_logs(settings.log_format)
    with _listen("127.0.0.1", 0) as listener:
        await _serve(settings, listener, insecure=False, announce=announce)


async def _serve(
    settings: Settings, listener: socket.socket, *, insecure: bool, announce: Announce | None = None
) -> None:
    give_back_memory()
    host, port = listener.getsockname()[:2]
    for mistake in find_mistyped(os.environ):
        err.print(f"[yellow]{escape(mistake)}[/yellow]")
    async with open_services(settings) as services:
        writes = services.models.chat != Models()
        if writes:
            # Read while nobody waits, and before what is freed again: 60 MB that without a model nobody needs.
            await asyncio.to_thread(services.models.tokens.count, "")
        if settings.load_samples and announce is None:
            await load_samples(services)
        # Prepared now, so that the first question need not wait.
        await services.models.judges.prepare()
        await asyncio.to_thread(read_dictionary, CORRECT_EVERYWHERE)
        if announce is None and writes and services.library.embedder.is_local:
            await answer_once(services)
        is_local = ip_address(host).is_loopback
        is_open = services.identities.tokens is None and await services.keys.is_empty()
        if is_open and not is_local and not insecure:
            raise ConfigurationError(
                f"There is no key, so everybody who reaches {host} could read and delete everything. Make one with "
                "`askgraph keys create`, listen on 127.0.0.1, or say --insecure."
            )
        local_token = secrets.token_urlsafe(32)
        app = make_app(services, local_token=local_token, closed=not is_local and not insecure, exposed=not is_local)
        config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            # uvicorn's own default is to believe this machine, where everybody may send the header.
            proxy_headers=bool(os.environ.get("FORWARDED_ALLOW_IPS")),
            ws="none",
            log_config=None,
            access_log=False,
            # Proxies keep idle connections for 60 seconds; one that closes just then is a 502 for their client.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=END_SECONDS,
            lifespan="on",
            server_header=False,
        )

        def drain() -> None:
            draining.append(asyncio.ensure_future(app.state.manager.drain()))
            draining.append(asyncio.ensure_future(services.library.parsers.close(PARSING_SECONDS)))

        draining: list[asyncio.Future[None]] = []
        # Streams end with their runs, or when these are handed over; sse-starlette would cut them off at once.
        AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
        findings = await run_checks(services.checks)
        suggested = {} if announce else await suggest_models(services.models)

        def begin() -> None:
            leave_what_is_open()
            if announce is None:
                print_banner(services, findings, suggested, host, port, is_open=is_open)
            else:
                announce(format_url(host, port), local_token)

        server = _Server(config, begin, drain)
        if announce is not None:
            asyncio.get_running_loop().add_reader(sys.stdin, lambda: server.handle_exit(signal.SIGTERM, None))
        with publish_address(settings, host, port, local_token):
            await server.serve(sockets=[listener])


async def load_samples(services: Services) -> None:
    """Load the sample library into the default workspace, unless that workspace has ever held a document."""
    if await services.library.documents.is_untouched("default"):
        for report in await services.library.ingestion.add_path("default", FOLDER):
            if report.status == "failed":
                err.print(f"[yellow]{escape(f'{report.source}: {report.error}')}[/yellow]")


async def answer_once(services: Services) -> None:
    """Answer a question without a model, and keep nothing of it: patterns are then compiled and queries prepared, for
    which the first reader would wait as long as for a fast model's first word."""
    # Not with the calculator, whose process ends when nobody asks it.
    context = replace(services.make_context(), calculator=None)
    try:
        await answer_locally(SAMPLE_QUESTION, Scope("default"), MODES["fast"], context)
    except Exception:  # whatever it was, the first reader will be told
        logger.info("the question at start was not answered", exc_info=True)


def print_banner(
    services: Services,
    findings: Mapping[str, Finding],
    suggested: Mapping[str, str],
    host: str,
    port: int,
    *,
    is_open: bool,
) -> None:
    """Print the address, how to ask, how each part runs and what is `suggested`, who may, and the problems found at
    start."""
    address = format_url(host, port)
    out.print(f"\n[bold]askgraph {version('askgraph')}[/bold] is ready: [bold]{address}/[/bold]\n")
    for part, running in {**services.parts, **suggested}.items():
        out.print(f"  {part:<11} {escape(running)}")
    who = (
        "everybody on this machine, and nobody else"
        if ip_address(host).is_loopback
        else "whoever reaches it; `askgraph keys create` makes the first key"
    )
    out.print(f"  {'access':<11} {f'without a key: {who}' if is_open else services.access}")
    for part, finding in findings.items():
        if finding.problem and not part.startswith(ANSWERING):
            out.print(f"  [red]{part:<11} {finding.problem}[/red]")
    out.print("\nAsk on the page, or here:\n")
    key = "" if is_open else '-H "Authorization: Bearer $ASKGRAPH_API_KEY" '
    out.print(
        f"  curl -N {address}/api/chat {key}-H 'Content-Type: application/json' "
        f'-d \'{{"question": "{SAMPLE_QUESTION}"}}\'\n'
    )
    out.print("Ctrl-C stops everything.\n")


class _Server(uvicorn.Server):
    """Announces when it is ready, and treats Ctrl-C as an ordinary request to stop."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None], drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce
        self._drain = drain

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own method raises the signal again at the end, which `make` would report as a failure.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            end_in_time()
        if self.started and not self.should_exit:
            self._drain()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()


def _listen(host: str, port: int) -> socket.socket:
    """Bind the port before anything is started, so that a port in use costs nothing."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol asyncio does not set TCP_NODELAY, and the body of an answer would wait for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {host}:{port} ({error.strerror}). Choose another port: askgraph serve --port 8001"
        ) from error
    return listener
