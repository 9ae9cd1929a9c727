"""The README and docs/ are true where that can be checked: links, paths, commands, settings and files."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from re import Pattern
from typing import Any

import pytest
from typer.main import get_command

from app.adapters.pgvectorstore.mapping import read_mapping
from app.cli import cli
from app.evaluation.sets import read_sets
from app.modes import read_modes
from app.settings import read_settings
from tests.http_client import describe_api
from tests.settings_reference import render_page
from tests.wire.habits import write_list

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`")


def read_prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def list_anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", read_prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_exist(page: Path) -> None:
    prose = read_prose(page)
    broken = []
    for link in _LINK.findall(prose):
        if re.match(r"https?://|mailto:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in list_anchors(file)):
            broken.append(link)
    broken += [path for path in _PATH.findall(prose) if not (ROOT / path).exists()]
    assert not broken


def test_decisions_are_listed_in_their_index() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text("utf-8")
    files = {file.name for file in (ROOT / "docs/decisions").glob("*.md")} - {"README.md"}
    assert files == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_records_that_code_names_exist() -> None:
    """A comment that refers to a record or to figures names a file that exists."""
    for folder in FOLDERS:
        for file in (each for ending in ("py", "toml") for each in (ROOT / folder).rglob(f"*.{ending}")):
            for name in re.findall(
                r"docs/(?:(?:decisions|operations)/[\w-]+|measurements)\.md", file.read_text("utf-8")
            ):
                assert (ROOT / name).exists(), f"{file.relative_to(ROOT)} names {name}"


def list_commands(of: Pattern[str], program: str) -> set[str]:
    """Return every command of this program that a page names, in prose or in a block, without its comment."""
    found: set[str] = set()
    for page in PAGES:
        found.update(match.partition(" #")[0].strip() for match in of.findall(page.read_text("utf-8")))
    return {command for command in found if command.startswith(program)}


IN_BLOCKS = re.compile(r"^(?:- run: |\.venv/bin/)?((?:askgraph|python|make) [^`\n|;…]+)$", re.MULTILINE)
IN_PROSE = re.compile(r"`((?:askgraph|python|make) [^`\n|;…]+)`")


def parse(line: str) -> list[str]:
    """Parse a command as the command line does, without running it, and return what is missing of it. Fails the test
    where it knows no such command or option, or a value is wrong."""
    command: Any = get_command(cli)
    words, context = shlex.split(line)[1:], None
    try:
        while hasattr(command, "commands"):
            if not words:
                return [] if command.invoke_without_command else ["a command of this group"]
            if words == ["--help"]:
                return []
            [name, *words] = words
            assert name in command.commands, f"there is no `{name}` in `{line}`"
            command = command.commands[name]
        if "--help" not in words:
            context = command.make_context(line, words)
    except Exception as error:  # Typer brings click along under a name of its own, with its errors
        if type(error).__name__ == "MissingParameter":
            return [str(error)]
        pytest.fail(f"`{line}`: {error}")
    finally:
        if context is not None:
            context.close()
    return []


@pytest.mark.parametrize("line", sorted(list_commands(IN_BLOCKS, "askgraph ")))
def test_commands_of_blocks_are_whole(line: str) -> None:
    assert not parse(line)


@pytest.mark.parametrize("line", sorted(list_commands(IN_PROSE, "askgraph ")))
def test_commands_of_prose_exist_with_their_options(line: str) -> None:
    parse(line)  # prose may leave out what a command works on


def test_a_wrong_command_is_found() -> None:
    for line in ("keys make", "nothing", "replay RUN --nope", "prune --keep-steps-of x"):
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            parse(f"askgraph {line}")
    assert parse("askgraph show")


@pytest.mark.parametrize("line", sorted(list_commands(IN_BLOCKS, "") | list_commands(IN_PROSE, "")))
def test_programs_and_targets_exist(line: str) -> None:
    match line.split():
        case ["make", target, *_]:
            assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), line
        case ["python", "-m", module, *_]:
            assert find_spec(module), line


def test_the_page_of_settings_is_what_the_code_says() -> None:
    page = (ROOT / "docs" / "operations" / "settings.md").read_text("utf-8")
    assert page == render_page(), "run: python -m tests.settings_reference > docs/operations/settings.md"


def test_the_habits_of_servers_are_those_that_the_tests_try() -> None:
    assert write_list() in (ROOT / "docs" / "models.md").read_text("utf-8"), "put in tests.wire.habits.write_list()"


def test_every_page_of_operations_is_in_its_index() -> None:
    index = (ROOT / "docs" / "operations.md").read_text("utf-8")
    files = {file.name for file in (ROOT / "docs" / "operations").glob("*.md")}
    assert files == set(re.findall(r"\]\(operations/([\w-]+\.md)\)", index))


def test_the_modes_of_the_profiles_page_are_read(tmp_path: Path) -> None:
    [modes] = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "profiles.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "profiles.toml").write_text(modes)
    read = read_modes(read_settings(profiles=tmp_path / "profiles.toml"))
    assert (read["brief"].generate.citation_style, read["strict"].grade.caveat) == ("source", 0.6)


def test_the_table_of_the_pgvectorstore_page_is_read(tmp_path: Path) -> None:
    [mapping] = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "pgvectorstore.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "table.toml").write_text(mapping)
    assert read_mapping(tmp_path / "table.toml").table == "handbook"


def test_the_set_of_the_evaluation_page_is_read(tmp_path: Path) -> None:
    rows = re.findall(r"^    (\{.*\})$", (ROOT / "docs" / "evaluation.md").read_text("utf-8"), re.MULTILINE)
    (tmp_path / "ours.jsonl").write_text("\n".join(rows), "utf-8")
    [each] = read_sets([str(tmp_path / "ours.jsonl")], workspace="default", limit=None)
    assert [question.answerable for question in each.questions] == [True, False, True]


def test_every_route_of_the_api_is_on_its_page() -> None:
    """Fields are described by the OpenAPI document itself (tests/api/test_openapi.py)."""
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    routes = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[\w/{}.-]*)", page)
    assert {(method, re.sub(r"\{\w+\}", "{id}", path)) for method, path in routes} >= {
        (method.upper(), re.sub(r"\{\w+\}", "{id}", path))
        for path, methods in describe_api()["paths"].items()
        for method in methods
    }
