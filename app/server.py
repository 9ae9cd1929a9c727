"""Serving: the socket, the sample library, the banner, and a stop that leaves nothing behind."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from types import FrameType

import uvicorn
from sse_starlette.sse import AppStatus

from app.cli.terminal import err, out
from app.library import FOLDER
from app.main import make_app
from app.runs.manager import DRAIN_SECONDS, STEP_SECONDS
from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.errors import ConfigurationError
from domain.health import ANSWERING, run_checks
from nodes.local.routing import prepare

SAMPLE_QUESTION = "How many days of holiday does an employee have?"

END_SECONDS = int(DRAIN_SECONDS + 2 * STEP_SECONDS) + 1
"""After Ctrl-C, until whoever still follows a run is cut off: as long as draining may take."""


async def run_server(host: str, port: int) -> int:
    """Serve until told to stop. The exit code."""
    settings = read_settings()
    listener = _listen(host, port)
    host, port = listener.getsockname()[:2]
    async with open_services(settings) as services:
        if settings.load_samples:
            await load_samples(services)
        # Otherwise the first question would wait for it.
        await prepare(services.library.sentences)
        app = make_app(services)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_graceful_shutdown=END_SECONDS, lifespan="on"
        )

        def drain() -> None:
            draining.append(asyncio.ensure_future(app.state.manager.drain()))

        draining: list[asyncio.Future[None]] = []
        # Streams end when their runs have, or are handed on; sse-starlette would cut them off as soon as it is told.
        AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
        problems = await run_checks(services.checks)
        server = _Server(config, lambda: print_banner(services, problems, host, port), drain)
        await server.serve(sockets=[listener])
    return 0


async def load_samples(services: Services) -> None:
    """Load the sample library into the default workspace, unless that workspace has ever held a document."""
    if await services.library.documents.is_untouched("default"):
        report = await services.library.ingestion.add_paths("default", [FOLDER])
        for failed in report.failed:
            err.print(f"[yellow]{failed.source}: {failed.error}[/yellow]")


def print_banner(services: Services, problems: Mapping[str, str | None], host: str, port: int) -> None:
    """Print the address, how to ask, how each part runs, and the problems found at start."""
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    out.print(f"\n[bold]askgraph {version('askgraph')}[/bold] is ready: [bold]{address}/[/bold]\n")
    for part, running in services.parts.items():
        out.print(f"  {part:<11} {running}")
    for part, problem in problems.items():
        if problem and not part.startswith(ANSWERING):
            out.print(f"  [red]{part:<11} {problem}[/red]")
    out.print("\nAsk on the page, or here:\n")
    out.print(
        f"  curl -N {address}/api/chat -H 'Content-Type: application/json' "
        f'-d \'{{"question": "{SAMPLE_QUESTION}"}}\'\n'
    )
    out.print("Ctrl-C stops everything.\n")


class _Server(uvicorn.Server):
    """Says that it is ready once it is, and takes Ctrl-C for the wish to end that it is."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None], drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce
        self._drain = drain

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again when all is done, which would make an orderly end a failure of `make`.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.started and not self.should_exit:
            self._drain()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()


def _listen(host: str, port: int) -> socket.socket:
    """Taken before anything is started, so that a port in use costs nothing."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol asyncio does not send at once what is small: the body of an answer would wait for 40 ms.
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
