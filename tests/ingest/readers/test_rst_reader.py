"""reStructuredText as the published page shows it."""

import time
from contextlib import suppress

import pytest

from app.ingest.reading import read_document
from domain.errors import UnreadableDocument

GUIDE = """\
:orphan:

.. _gauges:

Rain gauges
===========

.. versionadded:: 2.1

   Gauges with *two* buckets, read by
   :func:`~rain.read_all` or ``read --all``.

.. seealso:: :ref:`the snow gauge <snow>`, :pypi:`rain` and `the site`_.

.. _the site: https://rain.example/

Buckets
-------

.. note:: Rinse them first.

   - with water
   - with soap

1. Open::

      gauge open

2. Read.

   .. code-block:: python
      :caption: read.py

      print(read())

.. strange:thing:: A title
   :option: 3

   Text of a directive that nobody knows.

.. confval:: depth

   Depth in :unknown-role:`mm`.

:Exit code 0: All is dry.

term
   Its meaning.

====== =====
Month  mm
====== =====
May    12
June   7
====== =====

+-------+------+
| a     | b    |
+=======+======+
| both         |
+-------+------+

.. toctree::

   other

.. include:: /etc/passwd

.. raw:: html

   <script>never</script>

.. image:: flake.png
   :alt: A snow flake
"""


def test_directives_and_roles_keep_their_words() -> None:
    document = read_document("gauges.rst", GUIDE.encode())
    assert document.title == "Rain gauges"
    assert [section.heading_path for section in document.sections] == [("Rain gauges",), ("Rain gauges", "Buckets")]
    assert document.text == (
        """\
# Rain gauges

Added in version 2.1: Gauges with two buckets, read by `read_all` or `read --all`.

See also: the snow gauge, rain and the site (https://rain.example/).

## Buckets

Note: Rinse them first.

- with water
- with soap

1. Open:

   ```
   gauge open
   ```

2. Read.

   read.py:

   ```python
   print(read())
   ```

A title: Text of a directive that nobody knows.

`depth`
: Depth in `mm`.

Exit code 0
: All is dry.

term
: Its meaning.

Month | mm
--- | ---
May | 12
June | 7

a | b
--- | ---
both |

A snow flake"""
    )
    assert [(document.text[link.start : link.end], link.address) for link in document.links] == [
        ("the site", "https://rain.example/")
    ]


def test_lines_that_are_lines_stay_lines_and_names_keep_their_colons() -> None:
    written = """\
.. py:function:: read(*names, **more)

   Reads.

>>> for name in names:
...     print(  name)
1

Write::

    .. py:function:: read(x)
       .. prompt:: bash $

    >>> x
    1

.. prompt:: bash $

   ls *a* `b

.. only:: html

   10\\ :sup:`5`
"""
    assert read_document("a.rst", written.encode()).text == (
        "`read(*names, **more)`\n: Reads.\n\n```python\n>>> for name in names:\n...     print(  name)\n1\n```\n\n"
        "Write:\n\n```\n.. py:function:: read(x)\n   .. prompt:: bash $\n\n>>> x\n1\n```\n\n"
        "```\nls *a* `b\n```\n\n10⁵"
    )


@pytest.mark.parametrize(
    "piece", ["* ", "`", ":a:`", ".. x::\n", "|", "a\n===\n\n", "- a\n\n", "*a ", "a_ ", ".. |a| x\n"]
)
def test_hostile_text_is_read_in_time(piece: str) -> None:
    started = time.process_time()
    with suppress(UnreadableDocument):
        read_document("a.rst", b"Text\n\n" + piece.encode() * (5_000 // len(piece)))
    assert time.process_time() - started < 6


def test_a_directive_of_code_that_nobody_knows_stays_code() -> None:
    text = read_document(
        "a.rst",
        b"""
.. click:example::

    @click.command()
    def copy(pattern="\\d"):
        click.echo(pattern)

.. quotation:: Ida

    It works.
""",
    ).text
    assert text == ('```\n@click.command()\ndef copy(pattern="\\d"):\n    click.echo(pattern)\n```\n\nIda: It works.')


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (":doc:`/guide/start`", "start"),
        (":meth:`.App.run`", "`App.run`"),
        (":file:`.env`", "`.env`"),
        (".. versionadded:: 0.8 Now ``x`` too.", "Added in version 0.8: Now `x` too."),
        (".. deprecated:: 2.0", "Deprecated since version 2.0."),
    ],
)
def test_names_and_versions_read_as_sphinx_shows_them(said: str, read: str) -> None:
    assert read_document("a.rst", said.encode()).text == read
