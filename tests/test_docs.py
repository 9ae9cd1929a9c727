"""Links, anchors and repository paths in the README and in docs/ lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def test_decisions_and_measurements_are_listed_in_their_index() -> None:
    for folder in ("decisions", "measurements"):
        index = (ROOT / "docs" / folder / "README.md").read_text("utf-8")
        files = {file.name for file in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
        assert files == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_records_that_code_names_exist() -> None:
    """A comment that refers to a record or to figures names a file that exists."""
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r"docs/(?:decisions|measurements)/[\w-]+\.md", file.read_text("utf-8")):
                assert (ROOT / name).exists(), f"{file.relative_to(ROOT)} names {name}"
