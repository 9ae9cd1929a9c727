"""Searches every table for what must not be there any more, in compressed states and tapes too."""

import asyncio
import json
import re
from typing import Any, LiteralString

import ormsgpack
import zstandard
from psycopg import AsyncConnection, sql

from app.adapters.postgres.audit import erase_from_audit
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from domain.history.erasure import Found, Needles
from domain.history.repeats import Repeats

_TABLES = """
    SELECT c.table_name AS name, array_agg(c.column_name::text ORDER BY c.ordinal_position) AS columns
    FROM information_schema.columns AS c
    JOIN information_schema.tables AS t USING (table_schema, table_name)
    WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
        AND (c.data_type IN ('text', 'character varying', 'jsonb', 'json', 'uuid', 'bytea')
             OR c.udt_name IN ('_text', '_uuid'))
        AND c.table_name NOT IN ('audit_log', 'erasures')
    GROUP BY c.table_name ORDER BY c.table_name
"""
"""Every table with its columns that can hold text. Numbers, times and vectors cannot. That somebody erased the id stays
in the audit log, where names alone are looked for, and that it is being erased is in `erasures` until the end."""

_NAMING = ("thread_id", "branch_of", "source")
"""Columns and JSON keys that hold the id of a thread or the path of a document."""

_FILTERED = ("accepted_runs", "assistants", "runs")
"""Tables whose JSON holds filters."""

_COMPRESSED = {"tapes": "tape", "state_packs": "pack"}

# What is packed has no plain text, and its run or thread is that of its row.
_ROWS: LiteralString = """
    SELECT {name} AS table, {run} AS run_id, {thread} AS thread_id, count(*) AS rows FROM (
        SELECT *, concat_ws(chr(10), {columns}) AS said, ARRAY[{naming}]::text[] AS names FROM {table}
        WHERE {is_ours}
    ) AS row
    WHERE EXISTS (SELECT FROM unnest(%(texts)s::text[]) AS text WHERE position(text IN said) > 0)
        OR names && %(names)s::text[] OR said ~ %(pattern)s::text
        OR EXISTS (SELECT FROM unnest(%(named)s::text[]) AS name WHERE position(name IN said) > 0)
        OR {is_filtered} AND said ~ %(filtering)s::text
    GROUP BY 1, 2, 3
"""

ASSISTANT_PROSE: LiteralString = "concat_ws(chr(10), name, description, setup ->> 'instructions', metadata)"
"""What people have written of an assistant."""

RUN_PROSE: LiteralString = "request #>> '{turn,profile,generate,system_instructions}'"
"""The same of the mode that a run was asked in."""

_PROSE: LiteralString = f"""
    SELECT 'assistants, ' || assistant_id AS table, NULL AS run_id, NULL AS thread_id, count(*) AS rows FROM assistants
    WHERE workspace_id = %(workspace_id)s AND {ASSISTANT_PROSE} ~ %(prose)s::text GROUP BY 1
    UNION ALL SELECT 'accepted_runs', run_id, thread_id, 1 FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND {RUN_PROSE} ~ %(prose)s::text
"""


# What people wrote themselves: it may be as short as a heading or a cell.
_WRITTEN: LiteralString = """
    SELECT 'runs' AS table, run_id, thread_id, concat_ws(chr(10), question, standalone_question) AS said FROM runs
    WHERE workspace_id = %(workspace_id)s
    UNION ALL SELECT 'accepted_runs', run_id, thread_id, concat_ws(chr(10), request #>> '{turn,question}', (
        SELECT string_agg(value #>> '{}', chr(10)) FROM jsonb_path_query(request, '$.history[*].question') AS value
    )) FROM accepted_runs WHERE workspace_id = %(workspace_id)s
    UNION ALL SELECT 'feedback', run_id, NULL, comment FROM feedback WHERE workspace_id = %(workspace_id)s
    UNION ALL SELECT 'threads', NULL, thread_id, concat_ws(chr(10), title, asked) FROM threads
    WHERE workspace_id = %(workspace_id)s
    UNION ALL SELECT 'set_questions', NULL, NULL, concat_ws(chr(10), question, array_to_string(answers, chr(10)))
    FROM set_questions WHERE workspace_id = %(workspace_id)s
"""

_IS_WRITTEN_ELSEWHERE: LiteralString = """
    SELECT said FROM unnest(%(said)s::text[]) AS said
    WHERE EXISTS (
        SELECT FROM documents
        WHERE workspace_id = %(workspace_id)s AND document_id::text <> %(document_id)s
            AND position(lower(rtrim(said, '.?!: ')) IN lower(concat_ws(chr(10), title, text))) > 0
    )
"""


async def search_tables(pool: Pool, needles: Needles) -> tuple[int, list[Found]]:
    """Return the number of tables, and what holds a needle, in the workspace and in the tables of none. Bytes are
    searched as they are, and packed ones unpacked. A name counts where a column, a JSON key or a filter says so."""
    pairs = [(key, name) for key in _NAMING for name in (needles.sources if key == "source" else needles.names)]
    values = {
        "texts": [*needles.texts, *(each.encode().hex() for each in needles.texts + needles.tokens)],
        "pattern": needles.pattern,
        "names": [f"{key}={name}" for key, name in pairs],
        "named": [f'"{key}": {json.dumps(name, ensure_ascii=False)}' for key, name in pairs],
        "filtering": match_filters(needles.sources),
        "prose": match_prose(needles),
        "workspace_id": needles.workspace_id,
    }
    found: list[Found] = []
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            tables = await (await connection.execute(_TABLES)).fetchall()
            for table in tables:
                columns = {name: sql.Identifier(name) for name in table["columns"]}
                nothing = sql.SQL("NULL")
                statement = sql.SQL(_ROWS).format(
                    name=sql.SQL("{} || coalesce(', ' || {}::text, '')").format(
                        sql.Literal(table["name"]), columns.get("assistant_id", nothing)
                    ),
                    run=columns.get("run_id", nothing),
                    thread=columns.get("thread_id", nothing),
                    columns=sql.SQL(", ").join(sql.SQL("{}::text").format(each) for each in columns.values()),
                    naming=sql.SQL(", ").join(
                        sql.SQL("{} || {}::text").format(sql.Literal(f"{name}="), columns[name])
                        for name in _NAMING
                        if name in columns
                    ),
                    table=sql.Identifier(table["name"]),
                    is_ours=sql.SQL("workspace_id = %(workspace_id)s" if "workspace_id" in columns else "true"),
                    is_filtered=sql.Literal(table["name"] in _FILTERED),
                )
                found += [Found(**row) async for row in await connection.execute(statement, values)]
            found += [Found(**row) async for row in await connection.execute(_PROSE, values)]
            for name, column in _COMPRESSED.items():
                statement = sql.SQL(
                    "SELECT run_id, thread_id, {} AS body FROM {} WHERE workspace_id = %(workspace_id)s"
                ).format(sql.Identifier(column), sql.Identifier(name))
                # By a hundred rows: all at once would fill the memory, and leave no turn to others.
                async with connection.transaction(), connection.cursor("packed") as cursor:
                    await cursor.execute(statement, values)
                    async for packed in cursor:
                        if holds(bytes(packed["body"]), needles):
                            found.append(Found(name, packed["run_id"], packed["thread_id"], 1))
            found += await _find_written(connection, needles) if needles.text else []
    if named := await erase_from_audit(pool, needles.workspace_id, needles.sources, dry_run=True):
        found.append(Found("audit_log", None, None, named))
    return len(tables) + 1, found


async def _find_written(connection: AsyncConnection[Any], needles: Needles) -> list[Found]:
    """Return what people wrote that consists of the document's words, unless another document has them, too."""
    repeats = await asyncio.to_thread(Repeats, needles.text)
    values: dict[str, Any] = {"workspace_id": needles.workspace_id, "document_id": needles.ids[0]}
    found: list[Found] = []
    async with connection.transaction(), connection.cursor("written") as cursor:
        await cursor.execute(_WRITTEN, values)
        while rows := await cursor.fetchmany(1000):
            written = [row.pop("said") or "" for row in rows]
            repeated = await asyncio.to_thread(lambda said: [tuple(repeats.find(each)) for each in said], written)
            found += [Found(**row, rows=1, repeated=parts) for row, parts in zip(rows, repeated, strict=True) if parts]
    if not found:
        return []
    values["said"] = list({said for each in found for said in each.repeated})
    elsewhere = {row["said"] async for row in await connection.execute(_IS_WRITTEN_ELSEWHERE, values)}
    own = (each._replace(repeated=tuple(said for said in each.repeated if said not in elsewhere)) for each in found)
    return [each for each in own if each.repeated]


def match_prose(needles: Needles) -> str:
    """Return a regular expression of PostgreSQL for what people may have written of the document: its ids and
    sentences, and its paths, as text or in JSON, unless a path is a word like others."""
    paths = [each for each in needles.sources if re.search(r"[\W\d_]", each)]
    written = dict.fromkeys(form for each in paths for form in (each, json.dumps(each, ensure_ascii=False)[1:-1]))
    named = [rf"(?:(?<![\w./-])|(?<=\\[nrt]))(?:{'|'.join(map(re.escape, written))})(?![\w/-]|\.\w)"] if written else []
    return "|".join([*map(re.escape, needles.texts), *named]) or "$^"


def match_filters(sources: tuple[str, ...]) -> str | None:
    """Return a regular expression of PostgreSQL for these paths where a filter names one, in JSON, or as text in JSON.
    None where there are none."""
    names = "|".join(re.escape(json.dumps(source, ensure_ascii=False)[1:-1]) for source in sources)
    before = r'"path": "|"path": \{"[a-z]+": "|(\[|, )"|path(=|\^=| in \([^)]*)(\\")?'
    return rf'(?<={before})({names})(?=\\?"|[\s,)])' if sources else None


def holds(packed: bytes, needles: Needles) -> bool:
    """Return True where the packed bytes hold a needle, or name a path in a filter."""
    if not packed:
        return False
    try:
        body = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    except zstandard.ZstdError:
        body = packed
    return needles.are_in(body) or any(b"path" + ormsgpack.packb(source) in body for source in needles.sources)
