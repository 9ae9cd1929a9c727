"""What is installed: the client and the command beside another program's `app`, and a service that a program starts."""

import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from askgraph import AskgraphError, Client, Unavailable

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio
import subprocess
import sys
import app, domain
from askgraph import AsyncClient, Client

assert (app.OWNER, domain.OWNER) == ("another program", "another program")
with Client(home=sys.argv[1]) as client:
    [sent] = client.upload(("falke.md", b"# Falke\\n\\n## Warranty\\n\\nThe Falke has a warranty of 36 months."))
    question = "How long is the warranty of the Falke?"
    print(client.ask(question).answer, flush=True)
    subprocess.run([sys.argv[2], "ask", question], check=True)

    async def find() -> None:
        async with AsyncClient(home=sys.argv[1]) as other:
            assert other.url == client.url
            assert (await other.documents())[0].title == "Falke"

    asyncio.run(find())
"""


def link_required(package: Distribution, extras: Iterable[str], packages: Path, seen: set[str]) -> None:
    """Link what a package requires into another environment. What is missing here, pyproject.toml excludes."""
    for required in map(Requirement, package.requires or ()):
        wanted = required.marker is None or any(required.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if not wanted or str(required) in seen:
            continue
        seen.add(str(required))
        try:
            found = distribution(required.name)
        except PackageNotFoundError:
            continue
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(str(found.locate_file(name)))
        link_required(found, required.extras, packages, seen)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with askgraph's wheel and links to the packages that it names, and those that they
    name, beside a package `app` and a module `domain` of somebody else."""
    folder = tmp_path_factory.mktemp("installed")
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    venv.create(folder / "venv", with_pip=False)
    programs = folder / "venv" / "bin"
    install = ["pip", "--python", str(programs / "python"), "install", "-q", "--no-compile", "--no-deps"]
    subprocess.run([sys.executable, "-m", *install, wheel], check=True, cwd=folder)
    [packages] = (folder / "venv").glob("lib/python*/site-packages")
    [described] = packages.glob("askgraph-*.dist-info")
    link_required(Distribution.at(described), (), packages, set())
    (packages / "app").mkdir()
    for file in ("app/__init__.py", "domain.py"):
        (packages / file).write_text("OWNER = 'another program'\n")
    return programs


def run(home: Path, *command: Path | str, **environment: str) -> str:
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), **environment},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_works_beside_another_programs_packages(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("raise ImportError('This is the app of the working directory.')\n")
    assert "Ask a question and stream the answer" in run(tmp_path, programs / "askgraph", "--help")
    assert "--thread" in run(tmp_path, programs / "python", "-m", "askgraph", "ask", "--help")


def test_a_program_with_an_app_of_its_own_starts_a_service_with_servers_of_its_own(
    programs: Path, tmp_path: Path
) -> None:
    here = {"HOME": "/nonexistent", "ASKGRAPH_HOME": str(tmp_path / "data")}
    said = run(tmp_path, programs / "python", "-c", PROGRAM, here["ASKGRAPH_HOME"], str(programs / "askgraph"), **here)
    by_client, _, by_command = said.partition("\n")
    assert by_client == "The Falke has a warranty of 36 months. [1]"
    assert by_client in by_command
    listed = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(programs) not in listed


def test_a_service_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKGRAPH_MODEL_TIMEOUT", "-1")
    monkeypatch.setenv("ASKGRAPH_SERVER", "http://127.0.0.1:9")  # who names a home does not mean it
    with pytest.raises(AskgraphError, match="model_timeout") as caught:
        Client(home=tmp_path)
    assert caught.value.code == "configuration_error"
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Unavailable, match="/bin/false -m askgraph serve ended with 1"):
        Client(home=tmp_path)


def test_the_client_imports_nothing_of_the_service(programs: Path, tmp_path: Path) -> None:
    code = "import sys; from askgraph import Client; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    imported = set(run(tmp_path, programs / "python", "-c", code).split())
    assert not imported & {"app", "graphs", "nodes", "domain", "langgraph", "fastapi", "psycopg", "numpy"}
