"""The formats that pandoc reads."""

import asyncio
import subprocess
import time
from functools import partial
from pathlib import Path

import orjson
import pytest

from app.ingest.parser_workers import ParserWorkers
from app.ingest.readers import pandoc
from app.ingest.readers.pandoc import Walk, find_program, parse
from app.ingest.reading import read_document
from domain.documents import name_unread
from domain.errors import CostlyDocument, OversizedDocument, UnreadableDocument

WRITTEN = """\
---
title: Rain gauges
author: Ann Smith
date: 2024-05-01
---

# Buckets

A bucket of 45^2^ litres[^n] costs ~~12~~ 13 euros, see [the site](https://rain.example/) or `read`.

[^n]: Not in winter.

## Steps

3.  Rinse

4.  Dry

    -   with air

| Month | mm |
|-------|----|
| May   | 12 |
| June  | 7  |

    if wet:
      dry()

> Mind the step.

term
:   Its meaning.
"""
PARTS = [
    "A bucket of 45² litres (Not in winter.) costs ~~12~~ 13 euros, see the site (https://rain.example/) or `read`.",
    "3. Rinse\n4. Dry\n   - with air",
    "Month | mm\n--- | ---\nMay | 12\nJune | 7",
    "```\nif wet:\n  dry()\n```",
    "> Mind the step.",
    "term\n: Its meaning.",
]


def write(text: str, dialect: str) -> bytes:
    """Let pandoc write a file."""
    command = [find_program(), "-s", "--quiet", "-f", "markdown", "-t", dialect, "-o", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "dialect", "other"),
    [
        ("a.org", "org", {}),
        ("a.adoc", "asciidoc", {}),
        ("a.mediawiki", "mediawiki", {}),
        ("a.dbk", "docbook", {}),
        ("a.opml", "opml", {}),
        # What these cannot say, or what pandoc reads otherwise than it writes.
        ("a.tex", "latex", {1: "1. Rinse\n2. Dry\n   - with air", 5: "Its meaning."}),
        ("a.ipynb", "ipynb", {0: "A bucket of 45² litres[1]", 1: "1. Rinse\n2. Dry", 5: "term"}),
    ],
)
def test_what_stands_in_a_file_is_read(name: str, dialect: str, other: dict[int, str]) -> None:
    document = read_document(name, write(WRITTEN, dialect))
    for place, part in enumerate(PARTS):
        assert other.get(place, part) in document.text
    paths = [section.heading_path for section in document.sections if section.heading_path]
    assert [path[-2:] for path in paths][-2:] == [paths[-2][-2:], ("Buckets", "Steps")]
    if dialect not in ("mediawiki", "ipynb"):
        assert document.title == "Rain gauges"
        assert document.metadata["author"] == "Ann Smith"
    [link] = document.links
    assert (document.text[link.start : link.end], link.address) == ("the site", "https://rain.example/")


def test_cells_that_span_others_numbers_of_letters_and_notes_keep_their_words() -> None:
    written = """\
<table><caption>Fees</caption><thead><tr><th rowspan="2">Place</th><th colspan="2">Fee</th></tr>
<tr><th>2023</th><th>2024</th></tr></thead>
<tbody><tr><td rowspan="2">Oslo</td><td>12</td><td><ul><li>13</li><li>14</li></ul></td></tr>
<tr><td>15</td><td>16</td></tr></tbody></table>
<ol start="3" type="a"><li>Open.</li><li>Close.</li></ol><ol type="I" start="4"><li>Rest.</li></ol>
<p>H<sub>2</sub>O, 1<sup>st</sup>, 2<sup>a+1</sup>, <q>said</q> <img src="x.png" alt="A red door"/> <img alt="x"/></p>"""
    assert Walk().read(parse(written.encode(), "html"), "a").text == (
        "Fees\n\nPlace | Fee 2023 | Fee 2024\n--- | --- | ---\nOslo | 12 | - 13 - 14\nOslo | 15 | 16\n\n"
        "- (c) Open.\n- (d) Close.\n- (IV) Rest.\n\n"
        "H₂O, 1st, 2^(a+1), “said” A red door"
    )


def test_a_notebook_shows_its_cells_and_what_they_printed() -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# Rain\n\nSee $x^2$."},
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": 1,
            "source": "print(1)",
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "\r9%\r\x1b[1m1\x1b[0mx\b\n"}],
        },
    ]
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    file = orjson.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    assert read_document("a.ipynb", file).text == "# Rain\n\nSee $x^2$.\n\n```python\nprint(1)\n```\n\n```\n1\n```"


def test_a_notebook_shows_tables_and_words_of_outputs_and_counts_pictures() -> None:
    page = "<table><thead><tr><th></th><th>mm</th></tr></thead><tbody><tr><th>May</th><td>12</td></tr></tbody></table>"
    bundles = [
        {"text/html": [page], "text/plain": "   mm"},
        {"text/markdown": "*wet*, ~~dry~~", "text/plain": "<Markdown object>"},
        {"text/latex": "$$x^2$$", "text/plain": "x**2"},
        {"image/png": "iVBO" * 50_000, "text/plain": "<Figure>"},
        {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}},
    ]
    code = {
        "cell_type": "code",
        "metadata": {},
        "execution_count": 1,
        "source": "show()",
        "outputs": [{"output_type": "display_data", "metadata": {}, "data": each} for each in bundles],
    }
    raw = {"cell_type": "raw", "metadata": {}, "source": "as it is"}
    file = orjson.dumps({"cells": [code, raw], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    document = read_document("a.ipynb", file)
    assert document.text.split("\n\n") == [
        "```python\nshow()\n```",
        "| | mm |\n--- | ---\nMay | 12",
        "wet, ~~dry~~",
        "$$x^2$$",
        "```\nas it is\n```",
    ]
    assert name_unread(document.unread) == "1 picture"


@pytest.mark.parametrize(
    ("name", "written", "read", "unread"),
    [
        ("a.adoc", "= T\n\ninclude::b.adoc[]\n\nDry.\n", "# T\n\nDry.", "1 file (b.adoc)"),
        ("a.adoc", "= T\n\n:mm: 12\n\nifdef::mm[]\n{mm} mm\nendif::[]\n", "# T\n\n12 mm", ""),
        (
            "a.adoc",
            "= T\n\n:a: Lumen\n:b: {a} \\\nPro\n\n{b}, {c}.\n\n:a: Umbra\n\n{a}, {b}.\n\n----\n{a}\n",
            "# T\n\nLumen Pro, {c}.\n\nUmbra, Lumen Pro.\n\n```\n{a}\n```",
            "",
        ),
        ("a.wiki", "{|\n! A !! B\n|-\n| 1 || 2\n\n== Dry ==\nWet.\n", "A | B\n--- | ---\n1 | 2\n\n## Dry\n\nWet.", ""),
        (
            "a.rst",
            'Dry.\n\n.. csv-table::\n\n   A 1" long, 2\n   "B" c, 3\n\nWet.\n',
            'Dry.\n\n.. csv-table::\n\n   A 1" long, 2\n   "B" c, 3\n\nWet.',
            "",
        ),
        ("a.wiki", "{|\n! A !! B\n|-\n| rowspan=2 | 1 || 2\n|-\n| 3\n|}\n", "A | B\n--- | ---\n1 | 2\n1 | 3", ""),
        (
            "a.adoc",
            "|===\n|Shift |Who |No\n\n.2+|Night |Ilse |311\n|Otto |312\n2+|Day |313\n|===\n",
            "Shift | Who | No\n--- | --- | ---\nNight | Ilse | 311\nNight | Otto | 312\nDay | Day | 313",
            "",
        ),
        (
            "a.adoc",
            '[cols="2*"]\n|===\n|Part |Limit\n\n.2+|Pump\n|4\n|6\n2*|same\n\na|\n!===\n!In !Out\n!3 !4\n!===\n|9\n|===\n',
            "Part | Limit\n--- | ---\nPump | 4\nPump | 6\nsame | same\nIn, Out; 3, 4 | 9",
            "",
        ),
        ("a.adoc", "Dry.\n\n////\n= No\n////\n\nWet.\n\n////\nnever closed\n", "Dry.\n\nWet.", ""),
        ("a.tex", "Dry \\cite{knuth,lamport}.", "Dry [knuth, lamport].", ""),
        (
            "a.tex",
            "\\title{T}\\date{March 2024}\\begin{document}\\maketitle\\begin{abstract}Dry.\n\nWet.\\end{abstract}"
            "\\section{In}Rain.\\end{document}",
            "# T\n\nDate: March 2024\n\n## Abstract\n\nDry.\n\nWet.\n\n## In\n\nRain.",
            "",
        ),
        (
            "a.dbk",
            "<book><info><title>T</title><abstract><para>Dry.</para></abstract></info><chapter><info><title>In</title>"
            "<abstract><para>Wet.</para></abstract></info><para>Rain.</para></chapter></book>",
            "# T\n\n## Abstract\n\nDry.\n\n## In\n\nWet.\n\nRain.",
            "",
        ),
        (
            "a.org",
            "#+DATE: <2024-05-01>\n#+THANKS: Ann\n#+begin_abstract\nDry.\n#+end_abstract\nWet.",
            "Abstract: Dry.\n\nWet.",
            "",
        ),
        ("a.org", '#+include: "b.org" src\nDry.\n', "Dry.", "1 file (b.org)"),
        (
            "a.org",
            "* Dry :ARCHIVE:\nNo pesticides.\n** Deep\n* Wet\nWater.\n",
            "# Dry ARCHIVE\n\n# Wet\n\nWater.",
            "4 hidden words (in an archived or commented part)",
        ),
        ("a.org", "* Rinse\n  DEADLINE: <2024-05-01 Wed>\n", "# Rinse\n\nDEADLINE: <2024-05-01 Wed>", ""),
        (
            "a.adoc",
            ":wet:\n\nifdef::in[]\nPassword.\nifndef::x[]\nIn.\nendif::[]\nendif::in[]\nifdef::in,wet[One.]\n"
            "ifdef::in+wet[Two.]\nifndef::in[]\nThree.\nendif::[]\n",
            "One. Three.",
            "3 hidden words (of an attribute that is not set)",
        ),
        ("a.rst", "Dry.\n\n.. include:: b.txt\n", "Dry.", "1 file (b.txt)"),
        ("a.rst", ".. csv-table:: mm\n   :file: b.csv\n   :header-rows: 1\n\nDry.\n", "mm\n\nDry.", "1 file (b.csv)"),
        ("a.rst", "Dry.\n\n.. image:: b.png\n", "Dry.", "1 picture"),
        ("a.tex", "\\section{Dry} \\input{b}\nWet.", "# Dry\n\nWet.", "1 file (b)"),
        ("a.tex", "Dry.\\input b.tex\nWet.", "Dry. Wet.", "1 file (b.tex)"),
        ("a.tex", "\\newif\\ifa\\ifdefined\\draft Dry\\else Wet\\fi.", "Wet.", ""),
        (
            "a.tex",
            "\\NewDocumentCommand\\fee{O{40}m}{#1 #2} \\NewDocumentCommand{\\lot}{m O{2}}{#1} Pay \\fee{euros}, \\lot{5}.",
            "Pay 40 euros, .",
            "1 placeholder (\\lot: define it by \\newcommand)",
        ),
        (
            "a.tex",
            "\\begin{supertabular}{ll}a & b \\\\ \\hline 1 & 2 \\\\\\end{supertabular}"
            "\\begin{tabbing}c \\= d \\\\ \\> e\\end{tabbing}",
            "a | b\n--- | ---\n1 | 2\n\nc d\ne",
            "",
        ),
        (
            "a.tex",
            "\\begin{wraptable}{r}{4in}\\caption{Rigs}\\begin{tabular}{lcc}\\toprule & \\multicolumn{2}{c}{Sea} \\\\"
            "\\cmidrule(lr){2-3} Rig & calm & wild \\\\ \\midrule A & 4 & 2 \\\\ "
            "B & 5 & \\multicolumn{1}{p{2cm}}{3 \\\\ m}\\end{tabular}\\end{wraptable}",
            "Rigs\n\nRig | Sea calm | Sea wild\n--- | --- | ---\nA | 4 | 2\nB | 5 | 3 m",
            "",
        ),
        (
            "a.tex",
            "\\begin{algorithm}\\caption{Trim}\\begin{algorithmic}[1]\\If{$w > 2$}\\State reef\\ElsIf{calm} \\RETURN 1"
            "\\EndIf\\end{algorithmic}\\end{algorithm} It costs \\EUR{45}.",
            "Trim\n\nif $w > 2$\n\nreef\n\nelse if calm\n\nreturn 1\n\nend if\n\nIt costs €45.",
            "",
        ),
        (
            "a.tex",
            "Dry. \\boxed2{two words} \\begin{tikzpicture}\\draw (0,0);\\end{tikzpicture} \\vspace{1em}",
            "Dry.",
            "8 characters (of the file's own text), 1 drawing",
        ),
        (
            "a.wiki",
            "{{Pump|name=P-7|flow=[[Litre|45 l]]}}\nIt is {{convert|5|{{unit|km}}|abbr=on}} away.{{cn}}\n",
            "name: P-7, flow: 45 l\n\nIt is [convert: 5 km, abbr: on] away.[cn]",
            "4 placeholders (templates)",
        ),
        (
            "a.wiki",
            "{{formatnum:48213}} or {{#expr: 2+4}} of {{{n|9}}}{{#if: | wet | dry}}.\n\n{{Reflist}}\n{{main|A b|C}}\n{{:Dry}}\n"
            "{| {{table}}\n| {{nts|1=5}} || {{r|1|2}}\n|}",
            "48213 or [#expr: 2+4] of 9dry.\n\n[main: A b, C]\n\n5 | [r: 1 2]",
            "1 file (Dry), 8 placeholders (templates)",
        ),
        (
            "a.dbk",
            "<article><title>Dry</title><!-- no -->\n<para>Run <command>a & b</command>, &deg;.</para><para>Wet.</article>",
            "Dry\n\nRun a & b, °.\n\nWet.",
            "",
        ),
        (
            "a.dbk",
            '<article><note><para>Dry.</para></note><xi:include href="b.xml" xmlns:xi="x"/></article>',
            "Note: Dry.",
            "1 file (b.xml)",
        ),
        (
            "a.1",
            ".TH A 1\n.SH B\n.so b.1\n.TS\ntab(;);\nl l.\none \\\nword;2\n.TE\n",
            "## B\n\none word | 2",
            "1 file (b.1)",
        ),
    ],
)
def test_what_is_not_read_does_not_vanish_in_silence(name: str, written: str, read: str, unread: str) -> None:
    document = read_document(name, written.encode())
    assert document.text.removeprefix("# A(1)\n\n") == read
    assert name_unread(document.unread) == unread


@pytest.mark.parametrize(
    ("dialect", "piece"),
    [("mediawiki", "{{"), ("mediawiki", "{{a|"), ("docbook", "<xi:include href='a"), ("asciidoc", "include::[")],
)
def test_what_includes_without_end_is_read_in_time(dialect: str, piece: str) -> None:
    started = time.process_time()
    Walk().leave_out_files(piece + "a" * 500_000 + piece * 50_000, dialect)
    assert time.process_time() - started < 3


def test_attributes_that_double_each_other_fill_in_so_much_and_no_more() -> None:
    doubling = "".join(f":a{n}: {{a{n - 1}}}{{a{n - 1}}}\n" for n in range(1, 60))
    walk = Walk()
    filled = walk.leave_out_branches(f":a0: x\n{doubling}\n{{a13}} {{a14}}\n{'{a13}' * 200}\n")
    assert f"{'x' * 2**13} {{a13}}{{a13}}\n" in filled
    assert (len(filled) < 1_000_000, filled.endswith("\\{a13}\n")) == (True, True)
    assert [*walk.assembly._unread] == [("placeholder", "attributes that fill in too much")]


MANUAL = r"""'\" t
.\" A comment
.de zZ
is a macro
..
.TH SYNC 1 "4 May 2026" "sync 3.5"
.SH NAME
sync \- copy files
.SH OPTIONS
.SS Ports
.TP
\fB\-\-port\fR=\fIPORT\fR, \fB\-p\fR
Uses this port
rather than 873.
.IP
It has another.
.PP
\fB\-q\fR
.RS 4
Quiet\&.
.RE
.PP
Example:
.nf
auto eth0
  up
.fi
.TS
l l.
Code	Meaning
0	Success
.TE
.so /etc/passwd
"""
MDOC = ".Dd May 4, 2026\n.Dt SYNC 1\n.Os\n.Sh NAME\n.Nm sync\n.Nd copy files\n.Sh OPTIONS\n.Bl -tag\n.It Fl p\nPort.\n.El\n"


def test_options_of_a_manual_page_are_terms() -> None:
    document = read_document("sync.1", MANUAL.encode())
    assert document.title == "SYNC(1)"
    assert document.sections[-1].heading_path == ("SYNC(1)", "OPTIONS", "Ports")
    assert document.text.partition("### Ports\n\n")[2] == (
        "--port=PORT, -p\n: Uses this port rather than 873.\n\n  It has another.\n\n-q\n: Quiet.\n\nExample:\n\n"
        "```\nauto eth0\n  up\n```\n\nCode | Meaning\n--- | ---\n0 | Success"
    )
    assert "`-p`\n: Port." in read_document("upload", MDOC.encode()).text
    assert "`-p`\n: Port." in read_document("upload", MDOC.replace(".Os", ".Os Debian Project").encode()).text


def test_a_condition_of_a_manual_page_may_open_at_the_end_of_a_line() -> None:
    # As Pod::Man begins each manual page of Perl.
    begin = ".if (\\n(rF:(\\n(.g==0)) \\{\\\n.    if \\nF \\{\\\n.        de IX\n..\n.    \\}\n.\\}\n"
    document = read_document("gov.1", f'{begin}.TH GOV 1\n.SH "NAME"\ngov \\- the rules of \\\ngovernance\n'.encode())
    assert document.text.endswith("gov - the rules of governance")
    stray = read_document("rot.8", b".TH ROT 8\n.de tq\n.  br\n..\n.\\}\n.SH NAME\nrot \\- rotates logs\n")
    assert stray.text.endswith("rot - rotates logs")
    lost = b".TH ROT 8\n.if n \\{\n.br\n.\\}\n.\\}\n.if t \\{\n.br\n" + b"Each log is rotated once a day.\n" * 9
    with pytest.raises(UnreadableDocument, match="Print it"):
        read_document("rot.8", lost)


def test_a_declared_encoding_counts() -> None:
    book = '<?xml version="1.0" encoding="windows-1251"?><book><title>Зима</title><para>Снег.</para></book>'
    assert read_document("a.dbk", book.encode("cp1251")).text == "# Зима\n\nСнег."


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.ipynb", b'{"cells": ['),
        ("a.opml", b"<x>"),
        ("a.org", b"".join(b"*" * level + b" a\n" for level in range(1, 1200))),
    ],
)
def test_files_that_cannot_be_read_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(UnreadableDocument):
        read_document(name, data)


def test_what_a_file_grows_to_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandoc, "MAX_TREE", 1000)
    with pytest.raises(OversizedDocument):
        read_document("a.org", b"word " * 1000)
    monkeypatch.setattr(pandoc, "MEMORY_MB", 20)
    with pytest.raises(CostlyDocument, match="20 MB"):
        read_document("a.org", b"*word* " * 500_000)


@pytest.mark.usefixtures("parser_processes")
async def test_pandoc_ends_with_its_time_or_its_worker() -> None:
    grown = "".join(
        rf"\newcommand{{\z{new}}}{{" + rf"\z{old} " * 10 + "}"
        for old, new in zip("abcdefghi", "bcdefghij", strict=True)
    )
    text = rf"\begin{{document}}\newcommand{{\za}}{{word}}{grown} \zj\end{{document}}"
    dialect = "latex-smart+east_asian_line_breaks"  # by which the process is known

    job = partial(parse, text.encode(), dialect)
    async with ParserWorkers(seconds=1) as workers:
        with pytest.raises(CostlyDocument):
            await workers.run(job)
    async with ParserWorkers(seconds=60) as workers:
        reading = asyncio.create_task(workers.run(job))
        await asyncio.to_thread(_wait, dialect.encode(), True)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    await asyncio.to_thread(_wait, dialect.encode(), False)


def _wait(argument: bytes, is_running: bool) -> None:
    """Wait until a process with this argument runs, or none does."""
    deadline = time.monotonic() + 20
    while any(argument in _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")) != is_running:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
