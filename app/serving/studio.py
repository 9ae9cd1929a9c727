"""Provides the graph to `langgraph dev` and LangGraph Studio, on the same services as `askgraph serve`.

`langgraph.json` names this module twice: `app`, whose lifespan opens the services once for the process, and
`load_graph`, which every run and every drawing calls. LangGraph's server keeps its own threads and checkpoints in
memory; documents, models and settings are shared. The input of a run is `{"question": …}`.
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
"""Has only a lifespan: LangGraph's server adds the routes."""


async def load_graph() -> AnswerGraph:
    """Return the graph without a checkpointer: LangGraph's server adds its own."""
    graph: AnswerGraph = app.state.graph
    return graph


def _build_graph(services: Services) -> AnswerGraph:
    # LangGraph makes a run's context by calling the context schema with the `context` that the client sent, `{}` by
    # default. Our context holds open connections, which no client can send. So this schema has no fields, and calling
    # it returns the context of the open services.
    @dataclass
    class OpenServices:
        """Has no fields to set."""

        def __new__(cls, **ignored: Any) -> Context:  # type: ignore[misc]
            return services.make_context()

    return build_answer_graph(None, services.settings.model_timeout).copy({"context_schema": OpenServices})
