"""The graph for `langgraph dev` and LangGraph Studio, on the same services as `askgraph serve`.

`langgraph.json` names this module twice: `app`, whose lifespan opens the services once for the process, and
`load_graph`, which every run and every drawing calls. LangGraph's server keeps threads and checkpoints itself, in
memory, apart from ours; documents, models and settings are shared. A run needs no more than `{"question": …}`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette

from app.settings import read_settings
from app.wiring.services import Services, open_services
from graphs.answer import AnswerGraph, build_answer_graph
from nodes.context import Context


@asynccontextmanager
async def _live(app: Starlette) -> AsyncIterator[None]:
    async with open_services(read_settings()) as services:
        app.state.graph = _build_graph(services)
        yield


app = Starlette(lifespan=_live)
"""Nothing but its lifespan: LangGraph's server adds its own routes."""


async def load_graph() -> AnswerGraph:
    """The graph, without a checkpointer: LangGraph's server adds its own."""
    graph: AnswerGraph = app.state.graph
    return graph


def _build_graph(services: Services) -> AnswerGraph:
    # LangGraph makes a run's context by calling the context schema with what the client sent as `context`, `{}` where
    # that is nothing. Ours holds open connections, which no client can send: the schema has no field to fill in, and
    # calling it gives the context of the open services.
    @dataclass
    class OpenServices:
        """Nothing to set."""

        def __new__(cls, **ignored: Any) -> Context:  # type: ignore[misc]
            return services.make_context()

    return build_answer_graph(None, services.settings.model_timeout).copy({"context_schema": OpenServices})
