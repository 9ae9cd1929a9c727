"""Searches every table for what must not be there any more, in compressed states and tapes too."""

import json
from collections import Counter
from collections.abc import Sequence

import zstandard
from psycopg import sql

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from domain.history.erasure import Needles

_TABLES = """
    SELECT c.table_name AS name, array_agg(c.column_name::text ORDER BY c.ordinal_position) AS columns
    FROM information_schema.columns AS c
    JOIN information_schema.tables AS t USING (table_schema, table_name)
    WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
        AND (c.data_type IN ('text', 'character varying', 'jsonb', 'json', 'uuid', 'bytea')
             OR c.udt_name IN ('_text', '_uuid'))
        AND (c.table_name, c.column_name) <> ('audit_log', 'action') AND c.table_name <> 'erasures'
    GROUP BY c.table_name ORDER BY c.table_name
"""
"""Every table with its columns that can hold text. Numbers, times and vectors cannot. That somebody erased the id stays
in the audit log, and that it is being erased is in `erasures` until the end."""

_NAMING = ("thread_id", "branch_of", "source")
"""Columns and JSON keys that hold the id of a thread or the path of a document."""

_COMPRESSED = {"tapes": "tape", "state_packs": "pack"}


async def search_tables(pool: Pool, needles: Needles) -> tuple[int, Counter[str]]:
    """Return the number of tables, and by table the rows that hold a needle. Bytes are searched as they are, and
    packed ones unpacked. A name counts in its workspace, where a column or a JSON key says that it is one."""
    wanted = needles.texts
    pairs = [(key, name) for key in _NAMING for name in (needles.sources if key == "source" else needles.names)]
    names = [f"{key}={name}" for key, name in pairs]
    named = [f'"{key}": {json.dumps(name, ensure_ascii=False)}' for key, name in pairs]
    found: Counter[str] = Counter()
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            tables = await (await connection.execute(_TABLES)).fetchall()
            patterns = [*wanted, *(each.encode().hex() for each in wanted)]
            for table in tables:
                columns = sql.SQL(", ").join(
                    sql.SQL("{}::text").format(sql.Identifier(name)) for name in table["columns"]
                )
                naming = sql.SQL(", ").join(
                    sql.SQL("{} || {}::text").format(sql.Literal(f"{name}="), sql.Identifier(name))
                    for name in _NAMING
                    if name in table["columns"]
                )
                is_ours = "workspace_id = %(workspace_id)s" if "workspace_id" in table["columns"] else "true"
                statement = sql.SQL(
                    "SELECT count(*) AS rows FROM ("
                    "SELECT concat_ws(chr(10), {}) AS said, ARRAY[{}]::text[] AS names, {} AS is_ours FROM {}) AS row "
                    "WHERE EXISTS (SELECT FROM unnest(%(texts)s::text[]) AS text WHERE position(text IN said) > 0) "
                    "OR is_ours AND (names && %(names)s::text[] "
                    "OR EXISTS (SELECT FROM unnest(%(named)s::text[]) AS name WHERE position(name IN said) > 0))"
                ).format(columns, naming, sql.SQL(is_ours), sql.Identifier(table["name"]))
                values = {"texts": patterns, "names": names, "named": named, "workspace_id": needles.workspace_id}
                row = await (await connection.execute(statement, values)).fetchone()
                found[table["name"]] += row["rows"] if row else 0
            for name, column in _COMPRESSED.items():
                statement = sql.SQL("SELECT {} AS body FROM {}").format(sql.Identifier(column), sql.Identifier(name))
                async for packed in await connection.execute(statement):
                    found[name] += holds(bytes(packed["body"]), wanted)
    return len(tables), +found


def holds(packed: bytes, needles: Sequence[str]) -> bool:
    """Return True where the packed bytes hold a needle."""
    if not packed:
        return False
    try:
        body = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    except zstandard.ZstdError:
        body = packed
    return any(needle.encode() in body for needle in needles)
