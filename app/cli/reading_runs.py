"""Opens runs for the commands that explain them: on the running server, here, or from a file."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from app.cli.running import run, run_on_server

if TYPE_CHECKING:
    from app.runs.saved_run import SavedRun


def run_on_saved(
    run_id: str, workspace: str, what: str, describe: "Callable[[SavedRun], Any]", show: Callable[[Any], int]
) -> NoReturn:
    """Show what `describe` makes of a run. A running server describes it at `/api/runs/RUN/WHAT`."""

    async def work() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services
        from domain.scope import Scope

        async with open_services(read_settings()) as services:
            return show(describe(await services.make_debugger().read(Scope(workspace), run_id)))

    run_on_server(lambda server: show(server.get("runs", run_id, what, workspace=workspace)))
    run(work())


def shorten(text: str, longest: int) -> str:
    """Return the text on one line, cut where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def show_ms(ms: float | None) -> str:
    """Return milliseconds for people."""
    return "" if ms is None else f"{ms:.1f} ms"


def show_cost(part: Mapping[str, Any]) -> str:
    """Return the cost of a call or a run for people."""
    return "cost unknown" if part["cost"] is None else f"${part['cost']:.4f}"
