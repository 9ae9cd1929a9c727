"""Markdown, HTML and plain text: what is kept, what goes, and under which heading it stands."""

import re
import time
from contextlib import nullcontext

import pytest

from app.ingest.readers.plain import read_plain
from app.ingest.reading import read_document
from domain.documents import ParsedDocument, name_unread
from domain.errors import UnreadableDocument


def list_sections(document: ParsedDocument) -> list[tuple[tuple[str, ...], str]]:
    return [(s.heading_path, document.text[s.start : s.end].strip()) for s in document.sections]


def check_cover(document: ParsedDocument) -> None:
    """Sections follow one another without gaps and hold all of the text."""
    assert document.sections[0].start == 0
    assert document.sections[-1].end == len(document.text)
    for one, two in zip(document.sections, document.sections[1:], strict=False):
        assert one.end == two.start


MARKDOWN = """\
---
title: "Field guide"
author: Mara
---
Preface with **bold**, `code[1]`, a [link](https://a.example/x) and a [relative one](other.md).

# Rain

Rain is *measured*
with a gauge.

## Buckets

1. Rinse
2. Dry
   - with a cloth
   - with air

| Part | Price |
| --- | --: |
| bucket | **12** |
| a \\| b | 3 |

```python
if wet:
    dry()
```

# Snow
<div>Snow <b>falls</b> &amp; stays</div>

> Quoted ![a snow flake](flake.png)
"""


def test_markdown_keeps_words_and_drops_markup() -> None:
    document = read_document("guide.md", MARKDOWN.encode())
    assert document.title == "Field guide"
    assert document.metadata == {"title": "Field guide", "author": "Mara"}
    check_cover(document)
    assert list_sections(document) == [
        (
            (),
            "Preface with bold, `code[1]`, a link (https://a.example/x) and a relative one.",
        ),
        (("Rain",), "# Rain\n\nRain is measured with a gauge."),
        (
            ("Rain", "Buckets"),
            "## Buckets\n\n1. Rinse\n2. Dry\n   - with a cloth\n   - with air\n\n"
            "Part | Price\n--- | ---\nbucket | 12\na \\| b | 3\n\n```python\nif wet:\n    dry()\n```",
        ),
        (("Snow",), "# Snow\n\nSnow falls & stays\n\n> Quoted a snow flake"),
    ]
    assert [(document.text[link.start : link.end], link.address) for link in document.links] == [
        ("link", "https://a.example/x"),
        ("relative one", "other.md"),
    ]


AWKWARD = """\
{: .subtitle }

# Setup { #setup }

{% include-markdown "intro.md" %}

Write to the desk run by
Ms. Keller, [by mail](mailto:desk@a.example){:target="_blank"}, or see [the form][form].\\
It takes {{ days }} a day.

[form]: https://a.example/form
<!-- nobody sees this -->

!!! warning "Before you start"
    Back up `{{ data }}`.

??? info

    - one
    - two

=== "Linux"

    ```sh title="run.sh"
    # {% kept %}
    ./run
    ```

:::tip Faster
Use two.
:::

> [!NOTE]
> Mind it.

1. Open the box.

   Keep the lid.

   ```toml tab="File"
   a = 1
   ```
2. Close it.
   - gently

Lid
:   What closes the box.

    It is heavy.

| Part<br>name | Use |
|---|---|
| `a\\|b` | **both** ** ends ** |
"""


def test_markdown_of_site_generators_reads_as_the_published_page() -> None:
    assert (
        read_document("setup.md", AWKWARD.encode()).text
        == """\
# Setup

Write to the desk run by Ms. Keller, by mail (desk@a.example), or see the form (https://a.example/form).
It takes {{ days }} a day.

Before you start: Back up `{{ data }}`.

Info:

- one
- two

Linux:

run.sh:

```sh
# {% kept %}
./run
```

Faster:

Use two.

> Note: Mind it.

1. Open the box.

   Keep the lid.

   File:

   ```toml
   a = 1
   ```

2. Close it.
   - gently

Lid
: What closes the box.

  It is heavy.

Part name | Use
--- | ---
`a\\|b` | both ends"""
    )


HANDBOOK = """\
import Tabs from '@theme/Tabs';
import {
  Card,
} from "./card";

# Setup

{/* not for you */}

<Tabs>
<TabItem value="win" label="Windows">

Run `setup.exe`.

</TabItem>
<TabItem value="linux">

Run `setup.sh`.

</TabItem>
</Tabs>

{% tab title="macOS" %}
Run `setup.pkg`, see [the list]({{< ref "list.md" >}}).
{% endtab %}
{% tab title="BSD" %}
Run `setup.tgz`.
{% endtab %}

<Snippet file="limits.mdx" />

Request the creation of a project in {* site *}.

{{< include "limits.md" >}}

It is ~~80~~ 70 euros for 45 m<sup>2</sup> of CO<sub>2</sub>.[^1] See [[wiki|the page]].

[^1]: On weekdays,
    as [agreed](a.md).

| Option | Meaning | Since |
|---|---|---|
| `a|b` | either | {{ since }} |
"""


def test_what_site_generators_fill_in_is_named() -> None:
    read = read_document("setup.mdx", HANDBOOK.encode())
    assert read.text == (
        "# Setup\n\nWindows:\n\nRun `setup.exe`.\n\nlinux:\n\nRun `setup.sh`.\n\nmacOS: Run `setup.pkg`, see the list.\n\nBSD: Run `setup.tgz`.\n\n"
        "Request the creation of a project in {* site *}.\n\n"
        "It is ~~80~~ 70 euros for 45 m² of CO₂. (On weekdays, as agreed.) See the page.\n\n"
        "Option | Meaning | Since\n--- | --- | ---\n`a\\|b` | either | {{ since }}"
    )
    assert [(each["kind"], each["where"]) for each in read.unread] == [
        ("file", '{{< Snippet file="limits.mdx" >}}'),
        ("placeholder", "{* site *}"),
        ("file", '{{< include "limits.md" >}}'),
        ("placeholder", "{{ since }}"),
    ]
    assert "import your data" in read_document("a.md", b"import your data from the list.").text


@pytest.mark.parametrize(
    "piece",
    [
        "[^1] ",
        "~~a ",
        "<sup>",
        "<A a>",
        "{% ",
        "{{",
        "{ #a ",
        "[a](",
        "!!! note\n    ",
        "a\n: b\n",
        "> ",
        "- ",
        '=== "',
        ":::a\n",
        "<b>",
        "`",
        "**",
        "\\[",
        "$a ",
    ],
)
def test_hostile_markdown_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    read_document("a.md", b"Text\n\n" + piece.encode() * (40_000 // len(piece)))
    assert time.process_time() - started < 6


def test_formulas_stay_as_they_are_and_prices_and_escaped_brackets_are_text() -> None:
    written = r"""
It is \(p_0 \, {{a}}\) at $h$, or $x * y * z$, for $5, \$6 or US$7; see \[1\] and \(this\).

\[
a^2 = **b**
\]

$$
\begin{matrix} a \\ b \end{matrix}
$$
"""
    read = read_document("a.md", written.encode())
    assert [text for _, text in list_sections(read)] == [
        r"It is $p_0 \, {{a}}$ at $h$, or $x * y * z$, for $5, $6 or US$7; see [1] and (this)."
        "\n\n$$ a^2 = **b** $$\n\n"
        r"$$ \begin{matrix} a \\ b \end{matrix} $$"
    ]


def test_steps_that_a_picture_or_code_keeps_apart_are_one_list() -> None:
    text = "1. Open.\n\n![Screenshot 2024-01-31](a.png)\n\n2. Run:\n```sh\nrun\n```\n3. Close.\n\nDone.\n\n5. Other"
    assert (
        read_document("a.md", text.encode()).text
        == "1. Open.\n2. Run:\n\n   ```sh\n   run\n   ```\n\n3. Close.\n\nDone.\n\n5. Other"
    )


PAGE = """\
<h1>Fees</h1>
<p>See <a href="https://a.example/all">all fees</a> or run <code>fees --all</code>.</p>
<table><caption>Fees in euros</caption>
<thead><tr><th rowspan=2>Country<th colspan=2>Fee</tr><tr><th>2023<th>2024</tr></thead>
<tr><td rowspan=2>Norway<td>12<td>13</tr><tr><td>14<td>15</tr></table>
<dl><dt>Fee<dt>Charge<dd>What you pay.<dd><p>What you owe.</p><dt>Tax<dd>What the state takes.</dl>
<blockquote><p>Pay.</p><p>Now.</p></blockquote>
<ol><li>Open:<pre class="language-sh">
open
</pre><li><p>Close.</p><p>Lock.</p></ol>
<figure><img src=a.png alt="A fee"><figcaption>Figure 1: a fee</figcaption></figure>
"""


def test_html_structure_becomes_markdown() -> None:
    document = read_document("fees.html", PAGE.encode())
    assert (
        document.text
        == """\
# Fees

See all fees (https://a.example/all) or run `fees --all`.

Fees in euros

Country | Fee 2023 | Fee 2024
--- | --- | ---
Norway | 12 | 13
Norway | 14 | 15

Fee, Charge
: What you pay.
: What you owe.

Tax
: What the state takes.

> Pay.
>
> Now.

1. Open:

   ```sh
   open
   ```

2. Close.

   Lock.

A fee

Figure 1: a fee"""
    )
    assert [(document.text[link.start : link.end], link.address) for link in document.links] == [
        ("all fees", "https://a.example/all")
    ]


def test_markdown_without_front_matter_is_named_by_its_first_heading_or_file() -> None:
    assert read_document("a/b_c.md", b"Text\n\n## Second\n").title == "Second"
    contents = b"# Contents\n\n- [Pumps](#pumps)\n  1. [Valves](#valves)\n\n# Pumps\n\nText\n"
    assert (read_document("a.md", contents).title, "Valves" in read_document("a.md", contents).text) == ("Pumps", False)
    listed = b"Known pumps:\n\n- [Falke](#falke)\n- [Adler](#adler)\n"
    assert "- Adler" in read_document("a.md", listed).text
    assert read_document("a/b_c.md", b"Text only").title == "b c"
    assert read_document("a.md", "# Invoice \u202efdp.exe".encode()).title == "Invoice fdp.exe"


def test_comments_of_obsidian_are_left_out_and_named() -> None:
    text = "It is on 4 May. %%Not yet.%%\n\n%%\nA price\n\nopen.\n%%\n\n```\n%%time\n```\n\n50%% or 60%%."
    document = read_document("a.md", text.encode())
    assert document.text == "It is on 4 May.\n\n```\n%%time\n```\n\n50%% or 60%%."
    assert [each.text for each in document.unseen] == ["Not yet. A price open."]


def test_a_rule_is_not_front_matter() -> None:
    assert read_document("a.md", b"---\n\n# One\n\nTwo\n").text == "# One\n\nTwo"


HTML = """\
<title>Rain &amp; Snow</title>
<nav><h2>Menu</h2><a href=/>Home</a></nav>
<style>p { color: red }</style>
<p>Intro<br>second&nbsp;line <b>bo</b>ld
<h1>Rain</h1>
<div hidden>secret</div><p style="display: none">gone</p><template><p>later</p></template>
<table><thead><tr><th>Month<th>mm</thead>
<tr><td><p>May</p><p>June</p><td>12
<tr><td>July<td><ul><li>3</ul></table>
<h3>Deep</h3>
<ol start=3><li>three<li>four<ul><li>inner</ul></ol>
<pre>
  keep
    this
</pre>
<script>alert("no")</script>
<h2>Snow</h2>
<p>Unclosed <i>tags &lt;b&gt; &eacute;
"""


def test_messy_html_reads_as_seen() -> None:
    document = read_document("page.html", HTML.encode())
    assert document.title == "Rain & Snow"
    check_cover(document)
    assert list_sections(document) == [
        ((), "Intro\nsecond line bold"),
        (("Rain",), "# Rain\n\nMonth | mm\n--- | ---\nMay; June | 12\nJuly | 3"),
        (("Rain", "Deep"), "### Deep\n\n3. three\n4. four\n   - inner\n\n```\nkeep\n  this\n```"),
        (("Rain", "Snow"), "## Snow\n\nUnclosed tags <b> é"),
    ]


def test_html_nested_thousands_deep_is_read() -> None:
    page = "<div>" * 2_900 + "bottom" + "</div>" * 2_900
    assert read_document("deep.html", page.encode() * 2).text == "bottom\n\nbottom"
    with pytest.raises(UnreadableDocument, match="nested"):
        read_document("deep.html", page.encode().replace(b"bottom", page.encode()))


PLAIN = """\
Release notes

Everything new.

Version 2
=========
Text of two.

Fixes
-----
- a bug

Version 1
=========
----------------
not a heading above
"""


def test_underlined_lines_of_plain_text_are_headings() -> None:
    document = read_document("notes.txt", PLAIN.encode())
    assert document.title == "Release notes"
    check_cover(document)
    assert list_sections(document) == [
        ((), "Release notes\n\nEverything new."),
        (("Version 2",), "# Version 2\n\nText of two."),
        (("Version 2", "Fixes"), "## Fixes\n\n- a bug"),
        (("Version 1",), "# Version 1\n\nnot a heading above"),
    ]


SETUP = """\
To enable the cache, put this into the file gateway.conf and restart the
service afterwards so that it is read anew:

    # Only where the disk is fast, which it is where this was installed by us
    cache_enable = yes
    ttl = 300 seconds, which is enough for most of the services that we run

A.1. Scope

3.2.1 Requirements
The pump must hold.

========================================
[mysqld]
# skip-networking
bind-address = 127.0.0.1
========================================

    restic -r /srv/restic-repo backup ~/work
    restic -r /srv/restic-repo check

label in0 of the first board in the upper rack
label in1 of the second board in the upper rack

+-------+-------+
| Name  | Price |
+-------+-------+
| Pump  | 40    |
| Valve | 12    |
+-------+-------+

Name        Price   Stock
-------------------------
Pump        40      2

2024-01-01 10:00:00 starting server version 4.2 on port 8080 with 12 workers
2024-01-01 10:00:01 no space left on device while writing the segment again
2024-01-01 10:00:02 shutting down
"""


def test_lines_of_plain_text_that_are_lines_stay_lines() -> None:
    boxes = "Pumps\n\n┌────┬────┐\n│Name│Flow│\n├────┼────┤\n│Alba│ 3  │\n└────┴────┘\n\nDry.\n" + "\0" * 99
    assert read_document("a.txt", boxes.encode()).text == "Pumps\n\nName | Flow\n--- | ---\nAlba | 3\n\nDry."
    assert read_document("setup.txt", SETUP.encode()).text.split("\n\n") == [
        "To enable the cache, put this into the file gateway.conf and restart the service afterwards so that it is read "
        "anew:",
        "```\n# Only where the disk is fast, which it is where this was installed by us\ncache_enable = yes\n"
        "ttl = 300 seconds, which is enough for most of the services that we run\n```",
        "## A.1. Scope",
        "### 3.2.1 Requirements",
        "The pump must hold.",
        "```\n[mysqld]\n# skip-networking\nbind-address = 127.0.0.1\n```",
        "    restic -r /srv/restic-repo backup ~/work\n    restic -r /srv/restic-repo check",
        "label in0 of the first board in the upper rack\nlabel in1 of the second board in the upper rack",
        "Name | Price\n--- | ---\nPump | 40\nValve | 12",
        "Name        Price   Stock\n-------------------------\nPump        40      2",
        "2024-01-01 10:00:00 starting server version 4.2 on port 8080 with 12 workers\n"
        "2024-01-01 10:00:01 no space left on device while writing the segment again\n2024-01-01 10:00:02 shutting down",
    ]


def test_lines_at_the_edges_of_pages_are_left_out_where_they_number_them_and_said_once_where_they_repeat() -> None:
    pages = "\f".join(f"RFC 1   Rain   1997\n\nText {number} falls.\n\nAnn     [Page {number}]" for number in range(9))
    document = read_document("rfc.txt", pages.encode())
    texts = "\n\n".join(f"Text {number} falls." for number in range(9))
    assert document.text == f"RFC 1   Rain   1997\n\n{texts}"
    assert name_unread(document.unread) == "168 characters (at the edges of pages, which repeat them)"


@pytest.mark.parametrize("first", [1, 1001])
def test_numbers_at_the_edges_of_pages_that_count_what_is_on_them_are_kept(first: int) -> None:
    invoices = [f"Invoice {first + place}\n\n{name} pays." for place, name in enumerate(("Weber", "Klein", "Braun"))]
    text = read_document("a.txt", "\f".join(f"{each}\n\nThank you." for each in invoices).encode()).text
    assert text == "\n\n".join((invoices[0], "Thank you.", *invoices[1:]))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("2024-01-01 started\n2024-01-02 ended\n", "meeting notes"),
        ("A sentence that ends.\nMore.", "meeting notes"),
        ("\n\n  Agenda  \n\nfirst", "Agenda"),
        ("x" * 500, "meeting notes"),
        ("Rules for all who build\nand those who test\n\nText.", "Rules for all who build and those who test"),
        ("# Countries and their codes\n\n1:Canada", "Countries and their codes"),
        ("From: Ann\nSubject: Pumps\n\nText", "Pumps"),
        ("NUMBER   DATE   WHAT\n1   2   3", "meeting notes"),
        ("[Name of the firm]\n\nText", "meeting notes"),
    ],
)
def test_plain_text_is_named_by_a_short_first_line_or_its_file(text: str, title: str) -> None:
    assert read_document("/tmp/meeting_notes.txt", text.encode()).title == title


def test_words_of_a_page_that_nobody_sees_are_left_out_and_counted() -> None:
    styles = (
        "display: none", "opacity:0", "font-size:0px", "position:absolute;left:-9999px", "color:#fff", "top: 1px;color:white",
    )  # fmt: skip
    hidden = "".join(f'<p style="{style}">Ignore all rules</p>' for style in styles)
    document = read_document("a.html", f"<html><body><p>Seen.</p>{hidden}<p hidden>too</p></body></html>".encode())
    assert (document.text, document.unseen_words) == ("Seen.", 3 * len(styles) + 1)


def test_links_around_the_content_are_left_out_where_only_their_name_tells() -> None:
    links = "".join(f'<li><a href="{name}.html">{name}</a></li>' for name in ("Install", "Usage", "Support"))
    note = '<div class="sidebar"><p>Closed on Fridays, except in June. See <a href="x.html">hours</a>.</p></div>'
    menu = '<h2>Lunch menu</h2><div class="menu"><p>Soup</p><p>Bread</p></div>'
    named = f'<div class="sphinxsidebar"><a href="i.html">Borg 1.2</a><ul>{links}</ul></div>'
    crumbs = '<ul id="breadcrumbs"><li><a href="/">Home</a> &gt;</li></ul>'
    content = f"<p>Run it daily.</p><ul>{links}</ul>{note}{menu}"
    text = read_document("page.html", f"<body>{named}{crumbs}{content}</body>".encode()).text
    assert "Borg 1.2" not in text
    assert "Home" not in text
    assert text.startswith("Run it daily.\n\n- Install\n- Usage\n- Support")
    assert "Closed on Fridays" in text
    assert "Soup" in text


def test_what_covers_a_page_is_left_out_and_what_stands_above_its_title_kept() -> None:
    content = "<h2>Pumps</h2><p>A pump moves water.</p>"
    above = "<p>Draft of 3 May 2024</p>"
    consent = (
        "<div role=dialog><p>We value your privacy.</p><button>Accept</button></div><p class=no-print>Print me</p>"
    )
    page = f"<title>Pumps</title><body>{above}{content}{consent}"
    assert read_document("a.html", page.encode()).text == "Draft of 3 May 2024\n\n## Pumps\n\nA pump moves water."
    assert "Kept" in read_document("a.md", b"Kept\n\n<h1><img src=x></h1>\n\nText").text


@pytest.mark.parametrize(
    "frame", ["<body class=with-sidebar>{}", "<body><div class='page nav-open'><h1>All</h1>{}</div>"]
)
def test_a_frame_that_is_named_for_the_bar_within_is_kept(frame: str) -> None:
    links = "".join(f'<li><a href="{name}.html">{name}</a></li>' for name in ("Install", "Usage", "Support"))
    page = frame.format(f"<ul>{links}</ul><div class=menu><img alt='Soup and bread'></div>")
    text = read_document("page.html", page.encode()).text
    assert "- Install\n- Usage\n- Support" in text
    assert "Soup and bread" in text


def test_what_surrounds_the_content_of_a_page_is_left_out() -> None:
    contents = '<ul><li><a href="#a">Doors</a><ul><li><a href="#b">Windows</a></li></ul></li></ul>'
    rest = f'<h1 id="a">Doors<a href="#a">¶</a></h1>{contents}<p>See <a href="#b">windows</a>.<aside>Mind the step.</aside>'
    rest += f'<div class="fancy_toc"><a>Contents</a> {contents.replace("ul", "div").replace("li", "p")}</div>'
    around = '<div role="navigation">Home | Index</div><form role="search">Find</form>'
    page = f"<body>{around}<div role=main>{rest}{around}</div><p>Last update: today</p></body>"
    document = read_document("a.html", page.encode())
    assert document.text == "# Doors\n\nSee windows.\n\nMind the step."
    assert document.unseen_words == 0


def test_footers_and_links_to_the_pages_around_are_left_out() -> None:
    head = '<head><link rel=prev href="a.html"><link rel="next" href="c.html"></head>'
    turning = '<ul><li><a href="a.html">Back</a></li><li><a href="#">Handbook</a></li><li><a href="c.html#top">On</a></li></ul>'
    table = '<table><tr><td>[<a href="i.html">Index</a>]</td><td>[<a href="j.html">Contents</a>]</td></tr></table>'
    content = (
        '<article><p>Doors, <a href="a.html">no</a> <a href="c.html">windows</a>.</p><footer>By Ann.</footer></article>'
    )
    after = '<p><a href="#">Up</a></p><div class="footer">Made today.</div><footer>A firm.</footer>'
    page = f"{head}<body>{turning}{table}{content}{after}{turning}</body>"
    assert read_document("b.html", page.encode()).text == "Doors, no windows.\n\nBy Ann."


def test_words_of_a_page_that_may_be_seen_are_kept() -> None:
    styles = ("opacity:0.5", "font-size:0.8em", "background:#000;color:#fff", "background-color:white", "left:-20px")
    shown = "".join(f'<p style="{style}">word</p>' for style in styles)
    dark = '<div class="dark"><p style="color:#fff">word</p></div>'
    document = read_document("a.html", f"<html><body>{shown}{dark}</body></html>".encode())
    assert (document.text.count("word"), document.unseen_words) == (len(styles) + 1, 0)


STATUTES = """\
Statutes of the Sailing Club

1. Members

2. Board

1. Members

1.1. Fees

Members pay

1. a fee each year
2. a berth

2. Board

   1. The board has five members.

   2. It meets monthly
"""


@pytest.mark.parametrize("indent", ["", "  "])
def test_numbered_lines_of_plain_text_are_headings(indent: str) -> None:
    document = read_document("statutes.txt", STATUTES.replace("\n1.1", f"\n{indent}1.1").encode())
    assert [path for path, _ in list_sections(document)] == [
        (),
        ("1. Members",),
        ("1. Members", "1.1. Fees"),
        ("2. Board",),
    ]


def test_numbered_lines_without_parts_are_items() -> None:
    document = read_document("list.txt", b"Packing\n\n1. Tent\n\n2. Rope\n\n3. Stove\n")
    assert [path for path, _ in list_sections(document)] == [()]


# fmt: off
PAGES = [
    ("<ul role=tablist><li role=tab>Linux<li role=tab>Windows</ul><div role=tabpanel><p>Run setup.sh.</div><div role=tabpanel hidden><p>Run Setup.exe.</div><h3><button aria-expanded=false>Which port?</button></h3><div style='display: none'><p>Port 8443.</div><h3>Restart?</h3><div hidden=until-found>Only on Windows.</div>", ['Linux: Run setup.sh.', 'Windows: Run Setup.exe.', '### Which port?\n\nPort 8443.', '### Restart?\n\nOnly on Windows.'], ['- Linux']),
    ("<p>Pay 300<sup><a href='#fn1'>4</a></sup> euros.</p><ol><li id=fn1 value=4>Net.</ol>", [], ['3004']),
    ("<p>45<span style='vertical-align:super'>2</span> x", ['45² x'], []),
    ("<p><span style='text-decoration: line-through'>Old rule.</span> New rule.", ['~~Old rule.~~ New rule.'], []),
    ('<del><p>Old rule.</p><p>Older.</p></del><p>New rule.', ['~~Old rule.~~', '~~Older.~~'], ['~~New']),
    ('<p>E=<math><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>', ['c^{2}'], []),
    ("<p>So <script type='math/tex'>x^2+1</script> is.", ['$x^2+1$'], []),
    ('<p>So <mjx-container><svg></svg><mjx-assistive-mml><math><msup><mi>x</mi><mn>2</mn></msup></math></mjx-assistive-mml></mjx-container> is.', ['x^{2}'], []),
    ("<p><img class='mwe-math-fallback-image-inline' alt='{\\displaystyle a^{2}}' src=x>", ['a^{2}'], []),
    ('<ol><li value=7>seven<li>eight</ol>', ['7. seven', '8. eight'], []),
    ('<ol reversed><li>three<li>two<li>one</ol>', ['3. three', '1. one'], []),
    ('<ol type=a><li>first<li>second</ol>', ['(a)', '(b)'], []),
    ('<ol type=I start=3><li>third</ol>', ['III'], []),
    ("<ol style='list-style-type: lower-roman'><li>x<li>y</ol>", ['(ii)'], []),
    ("<ul class='nav nav-tabs' role=tablist><li><a role=tab href='#mac' aria-controls=mac data-toggle=tab>macOS</a><li><a role=tab href='#win' data-toggle=tab>Windows</a></ul><div class=tab-content><div role=tabpanel class='tab-pane active' id=mac><p>brew it.</div><div role=tabpanel class=tab-pane id=win style='display:none'><p>choco it.</div></div>", ['macOS: brew it.', 'Windows: choco it.'], []),
    ('<div role=tablist><button role=tab id=t1>One</button><button role=tab id=t2>Two</button></div><div role=tabpanel aria-labelledby=t2 hidden>Beta.</div><div role=tabpanel aria-labelledby=t1>Alpha.</div>', ['One: Alpha.', 'Two: Beta.'], []),
    ("<div class='tabbed-set tabbed-alternate'><input checked id=__tabbed_1_1 name=__tabbed_1 type=radio><input id=__tabbed_1_2 name=__tabbed_1 type=radio><div class=tabbed-labels><label for=__tabbed_1_1>Unix</label><label for=__tabbed_1_2>Windows</label></div><div class=tabbed-content><div class=tabbed-block><p>Use sh.</p></div><div class=tabbed-block><p>Use cmd.</p></div></div></div>", ['Unix: Use sh.', 'Windows: Use cmd.'], []),
    ("<div class='sd-tab-set docutils'><input checked id=sd-1 type=radio><label class=sd-tab-label for=sd-1>Ubuntu</label><div class='sd-tab-content docutils'><p>apt it.</p></div><input id=sd-2 type=radio><label class=sd-tab-label for=sd-2>Fedora</label><div class='sd-tab-content docutils'><p>dnf it.</p></div></div>", ['Ubuntu: apt it.', 'Fedora: dnf it.'], []),
    ('<h3><button aria-expanded=false aria-controls=a1>Who pays?</button></h3><div id=a1 hidden><p>The tenant pays.</div>', ['Who pays?', 'The tenant pays.'], []),
    ("<div class=card><a data-toggle=collapse href='#c1'>Who pays?</a><div id=c1 class=collapse style='display:none'>The tenant pays.</div></div>", ['The tenant pays.'], []),
    ('<details><summary>More</summary><p>Deep text.</details>', ['More', 'Deep text.'], []),
    ('<p>Open <span aria-hidden=true>★★★☆☆</span> now <i class=material-icons aria-hidden=true>arrow_forward</i></p>', ['Open', 'now'], ['arrow_forward']),
    ('<pre><font color=red>error:</font> no such file\n<font color=green>ok</font>\nexit 1</pre>', ['error: no such file\nok\nexit 1'], []),
    ('<pre>a = 1<br>b = 2</pre>', ['a = 1\nb = 2'], []),
    ('<pre><code><div>a = 1</div><div>b = 2</div></code></pre>', ['a = 1\nb = 2'], []),
    ('<table class=highlighttable><tr><td class=linenos><div class=linenodiv><pre>1\n2</pre></div></td><td class=code><div class=highlight><pre>a = 1\nb = 2</pre></div></td></tr></table>', ['a = 1\nb = 2'], []),
    ('<table width=100%><tr><td width=150><a href=a>Home</a><br><a href=b>Jobs</a></td><td><h1>Rules</h1><p>No smoking.</p><p>No dogs.</p></td></tr></table>', ['# Rules\n\nNo smoking.\n\nNo dogs.'], []),
    ('<table><tr><td><h1>Fees</h1><table border=1><tr><th>Berth<th>Fee<tr><td>North<td>40</table><p>Pay in May.</table>', ['# Fees', 'Berth | Fee\n--- | ---\nNorth | 40', '\n\nPay in May.'], []),
    ('<table><tr><th scope=row>Weight<td>40 kg<tr><th scope=row>Length<td>2 m</table>', ['Weight | 40 kg\nLength | 2 m'], ['---']),
    ('<table><tr><td>--port<td>The port<tr><td>--host<td>The host</table>', ['--port | The port\n--host | The host'], ['---']),
    ('<table><tr><td>Country<td>2023<td>2024<tr><td>Norway<td>12<td>13<tr><td>Chile<td>9<td>8</table>', ['--- | --- | ---'], []),
    ("<body><div class='cookie-banner'><p>We use cookies to improve your visit.</p><button>Accept all</button></div><h1>Pumps</h1><p>Rules.</body>", ['Rules.'], ['cookies']),
    ("<main><h1>Cookie policy</h1><div class='cookie-policy'><p>We use cookies for sign-in.</p></div></main>", ['We use cookies for sign-in.'], []),
    ('<pre><code>run</code><button>Copy</button></pre><div class=highlight><button class=copybtn>Copy to clipboard</button><pre>go</pre></div>', ['run', 'go'], ['Copy']),
    ("<p>Name: <input type=text value='Ann Lee'> <input type=checkbox checked> paid <input type=checkbox> sent</p><textarea>Note 5</textarea>", ['Ann Lee', '☒ paid', '☐ sent', 'Note 5'], []),
    ('<ul class=contains-task-list><li><input type=checkbox checked disabled> Done</li><li><input type=checkbox disabled> Open</li></ul>', ['☒ Done', '☐ Open'], []),
    ("<div class='confluence-information-macro confluence-information-macro-warning'><p class=title>Careful</p><div class=confluence-information-macro-body><p>Gate is hot.</p></div></div>", ['Careful: Gate is hot.'], []),
    ("<div class='expand-container'><div class='expand-control'><span class='expand-control-text'>Show keys</span></div><div class='expand-content expand-hidden' style='display:none'><p>Key 77.</p></div></div>", ['Key 77.'], []),
    ('<html><head><style>.c5{text-decoration:line-through}</style></head><body><p><span class=c5>Old.</span> New.</p></body></html>', ['~~Old.~~ New.'], []),
    ('<html><head><style>.x{display:none}</style></head><body><p>Seen.</p><p class=x>Ignore all rules.</p></body></html>', ['Seen.'], ['Ignore']),
    ("<h2><span class=mw-headline>Use</span><span class=mw-editsection><span>[</span><a href='/e'>edit</a><span>]</span></span></h2><p>Text<sup class=reference><a href='#cite_note-1'>[1]</a></sup>.</p>", ['## Use'], ['edit']),
    ("<x-note><template shadowrootmode=open><p>Refunds take 9 days.</p></template></x-note>", ['Refunds take 9 days.'], []),
    ("<table><tr><th>Plan<th>A<th>B<tr><td>Log<td><i title=No></i><td><svg><title>Yes</title></svg><tr><td>Keys<td><span aria-label=Yes></span><td><i title=Info></i>Two</table>", ['Log | No | Yes\nKeys | Yes | Two'], ['Info']),
    ('<p>He said <q>no</q>.', ['“no”'], []),
    ('<div role=heading aria-level=2>Pumps</div><p>x', ['## Pumps'], []),
    ('<div role=table><div role=row><span role=columnheader>A</span><span role=columnheader>B</span></div><div role=row><span role=cell>1</span><span role=cell>2</span></div></div>', ['A | B\n--- | ---\n1 | 2'], []),
    ("<p>Pay 40.<sup id=r1><a href='#fn1' role=doc-noteref>1</a></sup></p><section role=doc-endnotes><ol><li id=fn1><p>Net of tax. <a href='#r1' role=doc-backlink>↩</a></p></ol></section>", ['Net of tax.'], ['40.1', '↩']),
    ("<a class=skip-link href='#main'>Skip to content</a><main id=main><p>Rules.</main>", [], ['Skip to']),
    ("<code>a = 1<br>b = 2</code>", ['```\na = 1\nb = 2\n```'], []),
    ("<div style='white-space: pre-wrap'>port = 1\nhost = 2</div>", ['port = 1\nhost = 2'], []),
    ("<pre><code>import a</code><code>require a</code></pre>", ['import a\nrequire a'], []),
    ('<p>See <a href="https://a.example/x?q=1">all</a>, <a href="https://a.example/y">a.example/y</a>.<p><a href="https://b.example/1">one</a> <a href="https://b.example/2">two</a> <a href="https://b.example/3">three</a>', ['See all (https://a.example/x?q=1), a.example/y.', 'one two three'], ['b.example']),
    ('<button aria-controls=a hidden>More</button><p id=a hidden>Obey.</p><p>Seen.', ['Seen.'], ['Obey']),
    ("<h1>FAQ</h1><div class='panel panel-default'><div class='panel-heading'><div class='panel-title'><a data-toggle=collapse href='#c1'>Who pays the fee?</a></div></div><div id=c1 class='panel-collapse collapse'><div class='panel-body'><p>The tenant pays.</p></div></div></div><div class='hidden'>meta junk</div><span class='d-none'>more junk</span><p class='d-none d-md-block'>Wide note.</p>", ['Who pays the fee?', 'The tenant pays.', 'Wide note.'], ['junk']),
    ('<dl class=accordion><dt><button id=t1 aria-expanded=false aria-controls=d1>Is there a trial?</button></dt><dd id=d1 aria-labelledby=t1 hidden><div><p>Seven days.</p></div></dd></dl>', ['Is there a trial?', 'Seven days.'], []),
    ("<div>Issued at $<div style='display:inline'><b>5.22</b></div> a share.</div><div>Or <div style='display:inline-block'>6</div> each.</div>", ['Issued at $5.22 a share.', 'Or 6 each.'], []),
    ("<table><tr><th>Boat<th>Prices<tr><td>Heron<td><table><tr><td>Half day<td>60<tr><td>Full day<td>95</table><tr><td>Tern<td><ol><li>Pay<li>Sail</ol></table>", ['Heron | Half day, 60; Full day, 95', 'Tern | 1. Pay; 2. Sail'], []),
    ("<table><tr><td>Heron<td>4 seats<td><table><tr><td>Half day<td>60<tr><td>Full day<td>95</table><tr><td>Tern<td>6 seats<td><table><tr><td>Half day<td>80</table></table>", ['Heron | 4 seats | Half day, 60; Full day, 95\nTern | 6'], []),
    ("<table><tr><th>Class<th>Skill<tr><td>Ranger<td>Snare<tr><td colspan=2>Locked skills<tr><td>Druid<td>Thorns</table>", ['Ranger | Snare\n\nLocked skills\n\nClass | Skill\n--- | ---\nDruid | Thorns'], ['Locked skills |']),
    ("<ul><li role=checkbox aria-checked=true>Oil<li role=checkbox aria-checked=false>Wax</ul><ul class=inline-task-list><li class=checked>Coal<li>Salt</ul><ul><li><div class='checkbox checkbox-on'></div> Tar</ul>", ['- ☒ Oil\n- ☐ Wax', '- ☒ Coal\n- ☐ Salt', '- ☒ Tar'], []),
    ("<style>.t{display:none}</style><p>Cities of the north</p><button onclick=\"show('a')\">Oslo</button><button onclick=\"show('b')\">Bergen</button><div id=a class=t>Cold and dear.</div><div id=b class=t>Wet.</div>", ['Oslo: Cold and dear.', 'Bergen: Wet.'], []),
    ("<?xml version='1.0'?><html><head/><body><p>Pay <![CDATA[90 < 95 & tax]]> on <a id='x'/><time datetime='2025-09-01'/>.</p><script>//<![CDATA[\nx > y//]]></script><p>End.", ['Pay 90 < 95 & tax on 2025-09-01.', 'End.'], ['x > y', ']]>']),
    ('<p>See <ac:link><ri:page ri:content-title="Pagers"/></ac:link>, <ac:link><ri:page ri:content-title="Lamps"/><ac:plain-text-link-body><![CDATA[the lamps]]></ac:plain-text-link-body></ac:link>.</p><ac:structured-macro><ac:parameter ac:name="language">sh</ac:parameter><ac:plain-text-body><![CDATA[ack <id>]]></ac:plain-text-body></ac:structured-macro><ac:task-list><ac:task><ac:task-id>7</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>Coal</ac:task-body></ac:task></ac:task-list>', ['See Pagers, the lamps.', '```\nack <id>\n```', '- ☒ Coal'], ['sh', '7', 'Lamps']),
    ("<p>Pier<table><tr><th>Hours</th></tr></table><ul><li>daily</ul><table><tr><th>Fees</th></tr></table>", ['Pier\n\nHours:\n\n- daily\n\nFees:'], []),
    ("<table><tr><th>Berth<th>Summer<th>Winter<tr><td>North<td colspan=2>40 euros<tr><td colspan=3>Prices<tr><th colspan=3>With tax</table>", ['North | 40 euros | 40 euros', 'Prices', 'With tax'], ['Prices | Prices', 'With tax | With tax']),
    ("<table><thead><tr><th>Area<th>Part<th>Sold<tbody><tr><td rowspan=0>EU<td>Hub<td>7<tr><td>Cable<td>12<tbody><tr><td rowspan=9>US<td>Hub<td>5<tbody><tr><td>UK<td>Hub<td>3</table>", ['EU | Hub | 7\nEU | Cable | 12\nUS | Hub | 5\nUK | Hub | 3'], []),
    ("<table><tr><td colspan=2><b>Fees of 2025</b><tr><td><b>Berth</b><td><p><strong>Day</strong> </p><tr><td>North<td><b>40</b></table>", ['Fees of 2025\n\nBerth | Day\n--- | ---\nNorth | 40'], []),
    ("<table><tr><td><b>Note</b> well<td><b>Day</b><tr><td>North<td>40</table>", ['Note well | Day\nNorth | 40'], []),
    ('<p>So <span class=katex><span class=katex-mathml><math><semantics><mrow><mi>E</mi><mo>=</mo><mi>m</mi></mrow><annotation encoding="application/x-tex">E = m</annotation></semantics></math></span><span class=katex-html aria-hidden=true>E=m</span></span>.', ['So $E = m$.'], []),
    (r'<p>So <math alttext="\frac{a}{b}" display=block><mi>a</mi></math>, <math><mi>x</mi></math>.', [r'So $$\frac{a}{b}$$, $x$.'], []),
    ('<p><img alt="Choosing a language"></p><p>Choosing a language</p><p>Figure 2. Choosing a language</p>', ['Figure 2. Choosing a language'], ['language\n']),
    ('<p>They must not be employed.</p><p>In mines they must not be employed.</p>', ['They must not be employed.\n\nIn mines'], []),
    ('<div hidden><main>Orders.</main></div><p>Seen.', ['Seen.'], ['Orders']),
    ('<main>One.</main><main>Two.</main><p>Three.', ['One.\n\nTwo.\n\nThree.'], []),
    (f'<main>Loading</main><p>{"The last ferry leaves at ten. " * 4}', ['ferry'], []),
    ('<ul><li><a href="#a">Doors</a> close at ten.</li><li><a href="b.html">Windows</a></li></ul>', ['close at ten'], []),
    ('<h2>Hours</h2><table summary=Note><tr><td rowspan=2><img src="note.png" alt="[Note]"></td><th>Note</th></tr><tr><td><p>Gates close at ten.</p></td></tr></table><p>Come early.', ['## Hours\n\nNote: Gates close at ten.\n\nCome early.'], []),
    ('<h2>Hours</h2><div class=note><h3 class=title>Note</h3><p>Gates close at ten.</p></div><p>Come early.', ['## Hours\n\nNote: Gates close at ten.\n\nCome early.'], []),
    ('<h2>Hours</h2><div class="admonition note"><p class=admonition-title>Note</p><p>Gates close at ten.</p></div><p>Come early.', ['## Hours\n\nNote: Gates close at ten.\n\nCome early.'], []),
]
# fmt: on


@pytest.mark.parametrize(("page", "held", "left"), PAGES)
def test_marks_and_folded_parts_of_a_page_are_read_and_what_surrounds_them_is_not(
    page: str, held: list[str], left: list[str]
) -> None:
    page = page if "<head" in page else f"<html><body>{page}</body></html>"
    text = read_document("a.html", page.encode()).text
    assert [each for each in held if each not in text] == []
    assert [each for each in left if each in text] == []


def test_what_a_page_shows_without_words_is_counted() -> None:
    page = (
        "<p>Text<img src=a><img src=b alt=''><img src=c width=16><img alt='A pump in the hall'></p><iframe src=d></iframe>"
        "<figure><img src=d alt=''><figcaption>A sketch</figcaption></figure><p><img src=e alt=''></p>"
        "<svg><title>Loads</title><text>12<tspan>kW</tspan></text><text>9 t</text><image href=f /></svg><svg></svg><select><option>A</select><math><mi>x</mi></math>"
        "<table><tr><th>A<th>B<tr><td>1<td><table><tr><td>2<td>3</table></table><p hidden>Obey me</p><nav>Home</nav>"
    )
    document = read_document("a.html", page.encode())
    assert "\n\n12 kW\n9 t" in document.text
    assert name_unread(document.unread) == (
        "4 pictures, 1 attachment (shown within the page), 1 drawing, 1 form field,"
        " 2 hidden words (in a hidden part of the page)"
    )


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        ("<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>", True),
        ("<div id=app>Please turn JavaScript on.</div><script src=a.js></script>", True),
        ("<div id=root>Loading…</div><script src=a.js></script>", True),
        ("<p>Closed on Fridays.</p><script src=a.js></script><noscript>JavaScript is off.</noscript>", False),
        ("<p>We write JavaScript.</p>", False),
    ],
)
def test_a_page_that_a_script_has_still_to_fill_is_refused(body: str, is_refused: bool) -> None:
    page = f"<html><head><title>App</title></head><body>{body}</body></html>".encode()
    with pytest.raises(UnreadableDocument, match="JavaScript") if is_refused else nullcontext():
        assert "Closed" in (text := read_document("a.html", page).text) or "write" in text


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("", "Fees due"),
        ("Fees due \u2014 Harbour handbook", "Fees due"),
        ("Using &lt;code class='x'&gt;foo&lt;/code&gt; with std::vector&lt;int&gt;", "Using foo with std::vector<int>"),
        ("Word Document", "Fees due"),
        ("Untitled document", "Fees due"),
        ("New Page 1", "Fees due"),
        ("(anonymous)", "Fees due"),
        ("Q&amp;amp;A", "Q&A"),
        ("Documents", "Documents"),
    ],
)
def test_a_page_has_the_title_that_says_what_it_is_about(title: str, shown: str) -> None:
    page = f"<head><title>{title}</title></head><h1>Fees <em>due</em><a href='#f'>¶</a></h1><p>x"
    assert read_document("a.html", page.encode()).title == shown


def test_text_that_was_encoded_twice_is_set_right() -> None:
    data = "Won 3–1 in Café Ü.\nThe menu: 3 €, naïve.".encode().decode("latin-1").encode()
    assert read_plain("a.txt", data).text == "Won 3–1 in Café Ü.\nThe menu: 3 €, naïve."
    right = "Zoë paid 3 € – “naïve”. Â is a letter."
    assert read_plain("a.txt", right.encode()).text == right


def test_headings_of_restructured_text_are_read_as_such_in_plain_text() -> None:
    text = "Options\n=======\n\nmain sections\n`````````````\n\nThe root.\n\nCode:\n```\nfish\n```"
    assert (
        read_plain("a.txt", text.encode()).text == "# Options\n\n## main sections\n\nThe root.\n\nCode:\n```\nfish\n```"
    )


MAN_PAGE = """\
SYNC(1)                          User Commands                         SYNC(1)

NAME
       sync - copy files

SYNOPSIS
       sync [OPTION...] SRC DEST
            [--quiet]

DESCRIPTION
       Copies  files  to  another  place, and only those parts of them that dif‐
       fer.

   Ports
       --port=PORT, -p
              Uses this port rather than the default of 873.

              The configuration file has another.

       -q     Says nothing.

       --old       reads old files
       --new       reads new ones

EXIT VALUES
       o      0 - Success

       o      12 - Error in the protocol

SEE ALSO
       rcp(1), and sync(1)

sync 3.5                          04 Nov 2026                          SYNC(1)
"""


def test_a_manual_page_has_sections_and_entries() -> None:
    document = read_document("sync.1.txt", MAN_PAGE.encode())
    assert document.title == "SYNC(1)"
    assert (
        document.text
        == """\
## NAME

sync - copy files

## SYNOPSIS

```
sync [OPTION...] SRC DEST
     [--quiet]
```

## DESCRIPTION

Copies files to another place, and only those parts of them that differ.

### Ports

--port=PORT, -p
: Uses this port rather than the default of 873.

  The configuration file has another.

-q
: Says nothing.

--old
: reads old files

--new
: reads new ones

## EXIT VALUES

- 0 - Success
- 12 - Error in the protocol

## SEE ALSO

rcp(1), and sync(1)"""
    )


def test_a_manual_page_in_html_is_read_as_its_text_is() -> None:
    printed = re.sub(r"(?<!\S)(-+\w+)", r"<b>\1</b>", MAN_PAGE)
    top = ' &nbsp; <a href="#top_of_page">top</a>'
    parted = re.sub(
        r"^([A-Z ]+)$", rf"</pre><h2><a id='x' href='#x'></a>\1{top}</h2><pre>", printed, flags=re.MULTILINE
    )
    parted = parted.replace("   Ports\n", "</pre><h3>Ports</h3><pre>\n")
    for page in (printed, parted):
        html = f"<title>sync</title><body><pre>\n{page}</pre><ul><li>See <a href='/'>the list</a> of all pages.</ul>"
        text = read_document("sync.1.html", html.encode()).text
        expected = f"{read_document('sync.1.txt', MAN_PAGE.encode()).text}\n\n- See the list of all pages."
        assert text == expected


def test_code_in_a_manual_page_keeps_its_lines() -> None:
    lines = "       auto eth0\n       allow-hotplug eth1\n\n           up = ip link set eth0 mtu 1400 and drop what does not\n"
    page = MAN_PAGE.replace("EXIT VALUES\n", f"EXIT VALUES\n{lines}       fit -j REJECT\n           down = ip link\n\n")
    text = read_document("sync.1.txt", page.encode()).text
    assert "```\nauto eth0\nallow-hotplug eth1\n```" in text
    assert (
        "```\n    up = ip link set eth0 mtu 1400 and drop what does not\nfit -j REJECT\n    down = ip link\n```" in text
    )


def test_tabs_of_a_manual_page_stand_for_eight_columns() -> None:
    def set_tabs(line: str) -> str:
        stretches = [line[place : place + 8] for place in range(0, len(line), 8)]
        return "".join(f"{each.rstrip(' ')}\t" if each.endswith("  ") else each for each in stretches)

    tabbed = "\n".join(map(set_tabs, MAN_PAGE.split("\n")))
    assert "\t" in tabbed
    assert tabbed.expandtabs() == MAN_PAGE
    assert read_document("sync.1.txt", tabbed.encode()).text == read_document("sync.1.txt", MAN_PAGE.encode()).text


def test_ligatures_are_spelled_as_letters() -> None:
    text = "The oﬃce ﬁles the workﬂow forms. Ｒｏｏｍ ４０（ｶﾞｽ）: ﻣﻜﺘﺐ"
    assert read_document("a.txt", text.encode()).text == "The office files the workflow forms. Room 40（ガス）: مكتب"
