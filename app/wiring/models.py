"""Language models, rerankers and local judgement."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from app.adapters.chat.discovery import find_servers
from app.adapters.chat.providers import split_name
from app.adapters.chat.tokens import O200kCounter
from app.adapters.prices import PriceTable
from app.adapters.rerankers.registry import RERANKERS, Opening, open_reranker
from app.adapters.rerankers.unit_scorer import LateInteractionUnitScorer
from app.settings import Settings
from app.wiring.judges import build_local_judges
from app.wiring.library import LibraryServices
from domain.health import ANSWERING, Check, run_checks
from domain.model_names import NO_MODEL
from domain.ports.judgement import Judges
from domain.ports.models import TokenCounter
from domain.ports.reranking import Reranker
from domain.profile import Profile
from nodes.context import Models, Tier

logger = logging.getLogger("askgraph.wiring")


@dataclass(frozen=True, slots=True)
class ModelServices:
    """The language models, the rerankers, the local judges and the token counter."""

    chat: Models
    rerankers: Mapping[str, Reranker]
    """By the name that `rerank.method` has for each."""
    tokens: TokenCounter
    judges: Judges
    """Judge without a language model."""
    checks: Mapping[str, Check]
    parts: Mapping[str, str]
    """A description of each part for people."""


@asynccontextmanager
async def open_models(
    settings: Settings, modes: Mapping[str, Profile], prices: PriceTable, library: LibraryServices
) -> AsyncIterator[ModelServices]:
    """Connect the models. One that does not answer is only reported: local judgement stands in for it.

    Raises `ConfigurationError` for a model that cannot be used, and for a mode that needs one that is not set.
    """
    async with (
        _open_rerankers(settings, modes, prices, library) as (rerankers, reranking),
        _open_chat(settings, modes, prices) as (chat, parts, answering),
    ):
        yield ModelServices(
            chat=chat,
            rerankers=rerankers,
            tokens=O200kCounter(),
            judges=build_local_judges(
                library.local_embedder, LateInteractionUnitScorer(library.local_embedder, library.search)
            ),
            checks={**answering, **reranking},
            parts=parts,
        )


@asynccontextmanager
async def _open_rerankers(
    settings: Settings, modes: Mapping[str, Profile], prices: PriceTable, library: LibraryServices
) -> AsyncIterator[tuple[dict[str, Reranker], dict[str, Check]]]:
    rerankers: dict[str, Reranker] = {}
    checks: dict[str, Check] = {}
    async with AsyncExitStack() as stack:
        for name in RERANKERS:
            wanted_by = [mode.name for mode in modes.values() if mode.rerank.method == name]
            if name != "local" and not wanted_by and not getattr(settings, name, None):
                continue
            opening = Opening(settings, prices, library.local_embedder, library.search, wanted_by)
            reranker: Any = await stack.enter_async_context(open_reranker(name, opening))
            rerankers[name] = reranker
            if check := getattr(reranker, "find_problem", None):
                checks["rerank"] = check
                if problem := await check():
                    logger.error("%s", problem)
        yield rerankers, checks


async def suggest_models(models: ModelServices) -> dict[str, str]:
    """Return how to use each server of models on this machine, by its kind, where nothing is connected."""
    if models.chat != Models():
        return {}
    return {
        server.kind: f"is here; answers are written by it after: askgraph models use {server.kind}:{server.models[0]}"
        for server in await find_servers()
        if server.models
    }


async def check_models(settings: Settings, modes: Mapping[str, Profile], prices: PriceTable) -> dict[str, str | None]:
    """Ask each language model's server, where this is free, whether it knows key and model. Returns each problem."""
    async with _open_chat(settings, modes, prices) as (_, _, checks):
        if not checks:
            return {"models": None}
        return {name: finding.problem for name, finding in (await run_checks(checks)).items()}


@asynccontextmanager
async def _open_chat(
    settings: Settings, modes: Mapping[str, Profile], prices: PriceTable
) -> AsyncIterator[tuple[Models, dict[str, str], dict[str, Check]]]:
    tiers: dict[Tier, str] = {
        "small": settings.model_small,
        "large": settings.model_large,
        "judge": settings.model_judge,
    }
    named = [name for name in (*tiers.values(), *settings.model_fallbacks) if name not in NO_MODEL]
    if not settings.providers["openai"] and all(split_name(name)[0] == "openai" for name in named):
        local = "local (quotes the documents; `askgraph models` shows how to have answers written)"
        yield Models(), {"answerer": local}, {}
        return
    # Importing the SDK takes longer than starting everything else, so only a deployment that uses it pays.
    from app.adapters.chat.connections import Connections

    connections = Connections(
        settings.providers, timeout=settings.model_timeout, prices=prices, seeing=settings.models_that_see
    )
    try:
        knobs = {name: mode.models for name, mode in modes.items()}
        models = connections.connect(tiers, settings.model_fallbacks, knobs)
        await connections.check()
        if problem := await connections.find_problem():
            logger.error("%s", problem)
        for misfit in connections.find_misfits(modes, tiers):
            logger.warning("%s", misfit)
        writers = [models.large.name] if models.large else []
        answerer = ", then ".join([*writers, *(model.name for model in models.fallbacks), "local"])
        parts = {"answerer": f"{answerer}{f' ({settings.openai_base_url})' if settings.openai_base_url else ''}"}
        if unpriced := connections.unpriced():
            parts["prices"] = f"not known of {', '.join(unpriced)}: tokens are counted, ASKGRAPH_PRICES adds prices"

        def check_answering(name: str) -> Check:
            async def check() -> str | None:
                state = connections.describe()[name]
                return None if state == "ok" else state

            return check

        answering = {f"{ANSWERING}{name}": check_answering(name) for name in connections.describe()}
        yield models, parts, {"models": connections.find_problem, **answering}
    finally:
        await connections.close()
