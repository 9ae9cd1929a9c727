"""What the embedded servers' files still hold of rows and keys that are deleted: rewrites them, and searches them."""

import asyncio
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, LiteralString

from psycopg import errors, sql

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from domain.history.erasure import Erasable

LARGEST = 2**30
"""Size in bytes up to which a table is rewritten. Nothing reads or writes it meanwhile."""

OF_THREADS = (
    "accepted_runs", "erasures", "feedback", "run_documents", "run_turns", "runs", "set_questions", "set_runs",
    "state_packs", "tapes", "threads",
)  # fmt: skip
"""The tables of conversations, which many may erase: for them, no table of documents is locked."""
NOTES = ("erasures",)

_TABLES: LiteralString = """
    SELECT relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND pg_total_relation_size(oid) <= %s
        AND (%s OR relname = ANY(%s))
    ORDER BY pg_total_relation_size(oid)
"""

# ANALYZE leaves the samples of a table that has no rows any more. Since PostgreSQL 18.
_FORGET_SAMPLES: LiteralString = """
    SELECT pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited) FROM pg_stats
    WHERE schemaname = current_schema() AND tablename = {name} AND NOT EXISTS (SELECT FROM {table})
"""

# Former samples stay there as deleted rows do. The database's owner may rewrite them.
_REWRITE_SAMPLES: LiteralString = "VACUUM FULL pg_statistic"

# The second checkpoint begins in a new file of the log, so that none of before is needed.
_END_LOG: tuple[LiteralString, ...] = ("CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT")

BLOCK = 2**24
"""Bytes that are searched at once."""

_ATTEMPTS = 3
"""Valkey deletes the files that it has replaced a moment later."""


class Leftovers:
    """Implements `FileEraser` for servers in `home`; None where all are elsewhere."""

    def __init__(self, home: Path | None, pool: Pool, *, has_database: bool, has_cache: bool) -> None:
        self._home = home
        self._pool = pool
        self._has_database = has_database
        self._turn = asyncio.Lock()
        self._due: set[Erasable | None] = set()
        self.remarks: Sequence[str] = [
            remark
            for is_here, remark in (
                (
                    has_database,
                    "PostgreSQL is not embedded: what was deleted stays in its files and in the planner's samples "
                    "(pg_statistic) until VACUUM FULL, in its write-ahead log until that is recycled, and in what "
                    "archives or replicates it.",
                ),
                (has_cache, "The cache server is not embedded: its snapshots and those of its replicas are not read."),
            )
            if not is_here
        ]

    async def rewrite(self, kind: Erasable | None) -> None:
        """Rewrite the tables without deleted rows, of which the planner keeps samples, too, and end the write-ahead log
        that has them. A table that is in use stays as it is: the search finds what it holds. Of a server elsewhere only
        the samples are taken anew. Of several calls that wait for one another, one does it."""
        self._due.add(kind)
        async with self._turn:
            kinds, self._due = self._due, set()
            if kinds:
                await self._rewrite(OF_THREADS if "thread" in kinds else NOTES, is_whole="document" in kinds)

    async def _rewrite(self, named: Sequence[str], *, is_whole: bool) -> None:
        with translated_errors():
            async with borrow(self._pool, ALL_WORKSPACES) as connection:
                found = await connection.execute(_TABLES, [LARGEST, is_whole, list(named)])
                tables = [row["relname"] for row in await found.fetchall()]
                await connection.execute("SET lock_timeout = '1s'")
                try:
                    for table in tables:
                        names = {"name": sql.Literal(table), "table": sql.Identifier(table)}
                        anew: LiteralString = (
                            "VACUUM (FULL, ANALYZE) {table}" if self._has_database else "ANALYZE {table}"
                        )
                        for statement in (anew, _FORGET_SAMPLES):
                            with suppress(
                                errors.LockNotAvailable, errors.UndefinedFunction, errors.InsufficientPrivilege
                            ):
                                await connection.execute(sql.SQL(statement).format(**names))
                    if self._has_database:
                        with suppress(errors.LockNotAvailable):
                            await connection.execute(_REWRITE_SAMPLES)
                finally:
                    await connection.execute("RESET lock_timeout")
                for ending in _END_LOG if self._has_database else ():
                    await connection.execute(ending)

    async def search(self, texts: Sequence[str]) -> Counter[str]:
        """Return the number of files that hold one of the texts as it is, by folder."""
        if self._home is None or not texts:
            return Counter()
        found: Counter[str] = Counter()
        for attempt in range(_ATTEMPTS):
            await asyncio.sleep(attempt)
            found = await asyncio.to_thread(_search, self._home, [text.encode() for text in texts])
            if not found:
                break
        return found


def _search(home: Path, texts: Sequence[bytes]) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in _walk(home):
        try:
            with path.open("rb") as file:
                if _holds(file, texts):
                    found[f"files in {path.parent.relative_to(home)}"] += 1
        except FileNotFoundError:
            continue
    return found


def _holds(file: BinaryIO, texts: Sequence[bytes]) -> bool:
    """Return True where the file holds a text. It is read and not mapped: a server may cut it short meanwhile, and the
    memory behind its end kills the process that looks at it."""
    kept = max(map(len, texts))
    block = b""
    while more := file.read(BLOCK):
        block = block[-kept:] + more
        if any(text in block for text in texts):
            return True
    return False


def _walk(home: Path) -> Iterator[Path]:
    """Go through the files that are not empty."""
    for folder, _, names in os.walk(home):
        for name in names:
            path = Path(folder, name)
            try:
                about = path.lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(about.st_mode) and about.st_size:
                yield path
