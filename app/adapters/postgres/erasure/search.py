"""Searches every table for what must not be there any more, in compressed states and tapes too."""

from collections import Counter
from collections.abc import Sequence

import zstandard
from psycopg import sql

from app.adapters.postgres.checkpoints.packs import PACKED
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from domain.history.erasure import Needles

_TABLES = """
    SELECT c.table_name AS name, array_agg(c.column_name::text ORDER BY c.ordinal_position) AS columns
    FROM information_schema.columns AS c
    JOIN information_schema.tables AS t USING (table_schema, table_name)
    WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
        AND (c.data_type IN ('text', 'character varying', 'jsonb', 'json', 'uuid', 'bytea')
             OR c.udt_name IN ('_text', '_uuid'))
        AND (c.table_name, c.column_name) <> ('audit_log', 'action')
    GROUP BY c.table_name ORDER BY c.table_name
"""
"""Every table with its columns that can hold text. Numbers, times and vectors cannot. That somebody erased the id stays
in the audit log."""

_COMPRESSED = {"tapes": ("tape", "true"), "checkpoint_blobs": ("blob", f"type = '{PACKED}'")}


async def search_tables(pool: Pool, needles: Needles) -> tuple[int, Counter[str]]:
    """Return the number of tables, and by table the rows that hold a needle. Bytes are searched as they are, and
    packed ones unpacked."""
    wanted = [*needles.ids, *needles.sentences]
    found: Counter[str] = Counter()
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            tables = await (await connection.execute(_TABLES)).fetchall()
            patterns = [*wanted, *(each.encode().hex() for each in wanted)]
            for table in tables:
                columns = sql.SQL(", ").join(
                    sql.SQL("{}::text").format(sql.Identifier(name)) for name in table["columns"]
                )
                statement = sql.SQL(
                    "SELECT count(*) AS rows FROM (SELECT concat_ws(chr(10), {}) AS said FROM {}) AS row "
                    "WHERE EXISTS (SELECT FROM unnest(%s::text[]) AS needle WHERE position(needle IN said) > 0)"
                ).format(columns, sql.Identifier(table["name"]))
                row = await (await connection.execute(statement, (patterns,))).fetchone()
                found[table["name"]] += row["rows"] if row else 0
            for name, (column, which) in _COMPRESSED.items():
                if name in {table["name"] for table in tables}:
                    statement = sql.SQL("SELECT {} AS body FROM {} WHERE ").format(
                        sql.Identifier(column), sql.Identifier(name)
                    ) + sql.SQL(which)
                    cursor = await connection.execute(statement)
                    async for packed in cursor:
                        found[name] += holds(bytes(packed["body"] or b""), wanted)
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
