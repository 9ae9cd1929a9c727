"""Plants three faults and finds each from a reader's complaint, with the commands alone; prints commands and outputs.

    python -m benchmarks.faults     # the sample library; some three minutes

A threshold, a prompt (of a loopback model in a process of its own), and a document that was replaced by a wrong
version. What a reader does is done here: questions are asked, and the answer to one of them gets a thumb down.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.answering.requests import Ask, collect
from app.library import FOLDER
from app.settings import read_settings
from app.wiring.services import open_services
from benchmarks.streaming import start
from domain.feedback import Complaint

QUESTION = "How many days of paid holiday does every employee have?"
OTHERS = ("Who approves expenses of 600 euros?", "How long is the WS-400 delivered after the order?", "Hello there!")
MODE = "team"
RIGHT = "30 days of paid holiday"
WRONG = "13 days of paid holiday"


async def complain(home: Path, complaint: Complaint, **settings: object) -> str:
    """Ask all questions, and return the run of the one that a reader complains of."""
    async with open_services(read_settings(home=home, load_samples=False, **settings)) as services:
        runs = []
        for question in (QUESTION, *OTHERS):
            async with services.make_run_manager() as turns:
                ended, _ = await collect(await turns.ask(Ask(question, mode=MODE)))
            assert ended["type"] == "done"
            runs.append(ended["run_id"])
        await services.runs.feedback.put("default", runs[0], "down", complaint, "We have 30 days.", "a reader")
    return runs[0]


async def ingest(home: Path, folder: Path, old: str = "", new: str = "") -> None:
    """Add the sample library, with a passage replaced."""
    async with open_services(read_settings(home=home, load_samples=False)) as services:
        for file in sorted(FOLDER.iterdir()):
            if file.suffix in (".md", ".html", ".txt"):
                text = file.read_text("utf-8")
                (folder / file.name).write_text(text.replace(old, new) if old else text, "utf-8")
        await services.library.ingestion.add_paths("default", [folder])


def say(home: Path, environment: dict[str, str], *command: str, lines: int = 12) -> None:
    """Run a command, and print it with the beginning of its output."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in command)
    print(f"$ askgraph {shown}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *command],
        env=os.environ | environment | {"ASKGRAPH_HOME": str(home), "ASKGRAPH_LOAD_SAMPLES": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [
        line.rstrip()[:170]
        for line in (done.stderr + done.stdout).splitlines()
        if line.strip() and "WARNING" not in line
    ]
    print("\n".join(f"  {line}" for line in said[:lines]))
    if len(said) > lines:
        print(f"  … {len(said) - lines} more lines")
    assert done.returncode == 0, done.stderr


def find(home: Path, environment: dict[str, str], run_id: str, fork: Sequence[str], fleet: Sequence[str]) -> None:
    """Find the fault of a run."""
    say(home, environment, "runs", "--where", "rating == 'down'")
    say(home, environment, "why", run_id)
    say(home, environment, "whatif", run_id, *(["--models"] if "OPENAI_BASE_URL" in environment else []), lines=8)
    say(home, environment, "replay", run_id, *fork)
    say(home, environment, "replay", "--since", "7d", *fleet, lines=14)


def main() -> None:
    """Plant the faults one after the other, each in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="askgraph-faults-") as folder:
        root = Path(folder)
        for name in ("threshold", "prompt", "document"):
            (root / name / "library").mkdir(parents=True)
        profiles = root / "profiles.toml"
        environment = {"ASKGRAPH_PROFILES": str(profiles)}

        print("\n== A threshold: the mode answers only from a confidence of .999")
        home, library = root / "threshold", root / "threshold" / "library"
        profiles.write_text(f"[{MODE}]\ngrade.sufficient = 0.9999\ngrade.caveat = 0.999\n")
        asyncio.run(ingest(home, library))
        run_id = asyncio.run(complain(home, "not_found", profiles=profiles))
        fix = ["--set", "profile.grade.caveat=0.4"]
        find(home, environment, run_id, ["--after", "grade", *fix], fix)

        print("\n== A prompt: the team's instructions make the model refuse")
        home, library = root / "prompt", root / "prompt" / "library"
        profiles.write_text(
            f'[{MODE}]\ngenerate.system_instructions = "always reply with exactly: Ask your team lead."\n'
        )
        asyncio.run(ingest(home, library))
        with start("/v1/models", "-m", "tests.wire.openai", "--port", "PORT") as (address, _):
            url = f"{address}/v1"
            run_id = asyncio.run(complain(home, "wrong", profiles=profiles, OPENAI_BASE_URL=url))
            fix = ["--set", "profile.generate.system_instructions=null"]
            find(
                home,
                environment | {"OPENAI_BASE_URL": url},
                run_id,
                ["--from", "generate", *fix],
                [*fix, "--budget", "1"],
            )

        print("\n== A document: somebody replaced the handbook by a version with a mistake")
        home, library = root / "document", root / "document" / "library"
        profiles.write_text(f"[{MODE}]\n")
        asyncio.run(ingest(home, library))
        asyncio.run(ingest(home, library, RIGHT, WRONG))
        run_id = asyncio.run(complain(home, "wrong", profiles=profiles))
        say(home, environment, "why", run_id)
        print("(The handbook is put right, and ingested again.)")
        asyncio.run(ingest(home, library))
        find(home, environment, run_id, ["--from", "retrieve"], ["--search-anew"])


if __name__ == "__main__":
    main()
