"""Examines a deployment without changing it, and says what to do."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from app.adapters.postgres import monitoring
from app.adapters.prices import read_prices
from app.adapters.redis.connection import RedisServer
from app.modes import read_modes
from app.settings import Settings, reveal
from app.wiring.database import explain, start_embedded
from app.wiring.identities import examine_provider
from app.wiring.models import check_models
from domain.errors import AskgraphError, DatabaseUnavailable
from domain.health import Diagnosis

SPACE_GB = 2
"""Free space on the disk of the home folder below which to warn. Postgres stops when its disk is full."""


async def examine(settings: Settings) -> AsyncIterator[Diagnosis]:
    """Examine the parts of a deployment, one after the other."""
    yield _examine_home(settings.home)
    yield _examine_disk(settings.home)
    try:
        async with start_embedded(settings, cache=True) as started:
            async for diagnosis in _examine_database(started.database_url or reveal(settings.database_url)):
                yield diagnosis
            yield await _examine_redis(started.redis_url or reveal(settings.redis_url))
    except AskgraphError as error:
        yield Diagnosis("embedded servers", error.message, f"Look at the logs in {settings.home / 'logs'}.")
    if (found := await examine_provider(settings)) is not None:
        yield found
    try:
        for name, problem in (await check_models(settings, read_modes(settings), read_prices(settings.prices))).items():
            yield Diagnosis(name, problem or "ok", problem and "Check the model's name, key and address.")
    except AskgraphError as error:
        yield Diagnosis("models", error.message, "Correct the setting.")


def _examine_home(home: Path) -> Diagnosis:
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"askgraph")
    except OSError as error:
        return Diagnosis("home", f"{home} cannot be written: {error}", "Set ASKGRAPH_HOME to a folder that can.")
    return Diagnosis("home", f"{home} can be written")


def _examine_disk(home: Path) -> Diagnosis:
    try:
        free = shutil.disk_usage(home).free / 2**30
    except OSError as error:
        return Diagnosis("disk", str(error), "Set ASKGRAPH_HOME to a folder that exists.")
    remedy = (
        f"Free some space: below {SPACE_GB} GB a library or its logs may fill the disk." if free < SPACE_GB else None
    )
    return Diagnosis("disk", f"{free:.1f} GB free", remedy)


async def _examine_database(url: str) -> AsyncIterator[Diagnosis]:
    try:
        async for diagnosis in monitoring.examine(url):
            yield diagnosis
    except AskgraphError as error:
        said = explain(url, error).message if isinstance(error, DatabaseUnavailable) else error.message
        yield Diagnosis(
            "database", said, "Check DATABASE_URL, the network, and whether the server accepts connections."
        )


async def _examine_redis(url: str) -> Diagnosis:
    redis = RedisServer(url)
    try:
        if await redis.is_up():
            return Diagnosis("cache", "answers")
        return Diagnosis(
            "cache",
            redis.problem,
            "Check REDIS_URL. Until then questions are answered without the cache.",
        )
    finally:
        await redis.close()
