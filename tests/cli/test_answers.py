"""What `ask` prints at a terminal."""

import io

import pytest
from rich.console import Console

from app.cli.asking.answers import TerminalText

TABLE = "Amount | Approved by\n--- | ---\nup to 500 euros | nobody\nmore | a [director]\n\nThat is all. [1]\n"


def show(text: str, size: int) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=60)
    shown = TerminalText(console)
    for start in range(0, len(text), size):
        shown.write(text[start : start + size])
    shown.finish()
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_table_is_drawn_and_other_text_comes_as_it_is(size: int) -> None:
    lines = [line.rstrip() for line in show(TABLE, size).replace("\r\x1b[2K", "\n").splitlines()]
    assert "up to 500 euros  nobody" in lines
    assert "more             a [director]" in lines
    assert lines[-1] == "That is all. [1]"
    assert not any("---" in line for line in lines)


@pytest.mark.parametrize(
    "text", ["cat a | grep b\n", "one | two", f"{'word ' * 30}| and more\n", "no table\n", "a\n\n|"]
)
def test_what_only_looks_like_a_table_stays(text: str) -> None:
    assert show(text, 1000).endswith(text)
