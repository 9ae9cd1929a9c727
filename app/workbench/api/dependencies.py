"""Dependencies of the debugger's routes."""

from typing import Annotated

from fastapi import Depends, Request

from app.api.dependencies import get_run_manager, read_services
from app.workbench.debugger import Debugger
from app.workbench.replay.replay import Replayer


async def _make_debugger(request: Request) -> Debugger:
    return read_services(request).make_debugger()


async def _make_replayer(request: Request) -> Replayer:
    return read_services(request).make_replayer(get_run_manager(request))


DebuggerDep = Annotated[Debugger, Depends(_make_debugger)]
ReplayerDep = Annotated[Replayer, Depends(_make_replayer)]
