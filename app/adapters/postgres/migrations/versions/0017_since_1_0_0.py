"""All that has changed since 1.0.0, the only earlier version whose databases are upgraded.

Version 1.0.0 had its runs and files in the jobs of a queue (procrastinate); they are leased in their own rows now. It
kept packs of states in rows of `checkpoint_blobs`. A checkpoint was a row of `checkpoints` that named its packs, and
values that had not changed were in the packs of earlier checkpoints.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import ormsgpack
import zstandard
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import AsyncConnection
from psycopg.rows import dict_row, tuple_row

from app.adapters.postgres.documents.frequencies import CHUNKS, number_audience
from domain.people.names import fold_name
from domain.text.sketch import sketch

LEASES = """
-- `place`: the number of the run in its thread. `claimed_until`: until then nobody but the holder of `attempt` may
-- execute the run, or, where it waits, nobody at all.
ALTER TABLE accepted_runs ADD place bigint, ADD claimed_until timestamptz NOT NULL DEFAULT '-infinity';

-- The same for files. `turn`: their order, see queue/ingestions.py.
ALTER TABLE ingestions ADD attempt integer NOT NULL DEFAULT 0, ADD turn bigint NOT NULL DEFAULT 0,
    ADD claimed_until timestamptz NOT NULL DEFAULT '-infinity';

-- When old conversations are deleted next.
CREATE TABLE housekeeping (due timestamptz NOT NULL);
INSERT INTO housekeeping VALUES (now() + interval '1 hour');
"""

# Runs of a thread ended in the order in which they were executed. Those that have not ended go on in the order in which
# procrastinate would have taken them.
MOVE_LEASES = """
UPDATE accepted_runs AS run SET place = numbered.place
FROM (
    SELECT workspace_id, run_id, row_number() OVER (
        PARTITION BY workspace_id, thread_id
        ORDER BY ended_at NULLS LAST, state = 'running' DESC, attempt > 0 DESC, job_id
    ) AS place
    FROM accepted_runs
) AS numbered
WHERE run.workspace_id = numbered.workspace_id AND run.run_id = numbered.run_id;

DO $$
BEGIN
    IF to_regclass('procrastinate_jobs') IS NOT NULL THEN
        UPDATE ingestions SET attempt = attempts, turn = -priority, claimed_until = coalesce(scheduled_at, '-infinity')
        FROM procrastinate_jobs
        WHERE queue_name = 'ingestion' AND args ->> 'workspace_id' = workspace_id
            AND args ->> 'ingestion_id' = ingestion_id;
    END IF;
END
$$;
"""

LEASE_INDEXES = """
DROP INDEX unfinished_runs;
DROP INDEX accepted_runs_by_thread;
ALTER TABLE accepted_runs ALTER place SET NOT NULL, DROP job_id;
CREATE UNIQUE INDEX accepted_runs_by_thread ON accepted_runs (workspace_id, thread_id, place);
CREATE INDEX unfinished_runs ON accepted_runs (workspace_id, thread_id, place) WHERE state IN ('queued', 'running');

CREATE INDEX ingestions_by_arrival ON ingestions (workspace_id, arrival);
CREATE INDEX ingestions_in_line ON ingestions (turn, arrival) WHERE state IN ('queued', 'running');
CREATE INDEX ingestions_in_line_of_workspace ON ingestions (workspace_id, turn) WHERE state IN ('queued', 'running');
"""

# All names are read before the first is dropped.
DROP_QUEUE = """
DO $$
DECLARE
    statements text;
BEGIN
    SELECT string_agg(format('DROP %s IF EXISTS %s CASCADE;', kind, name), ' ' ORDER BY number) INTO statements FROM (
        SELECT 1 AS number, 'TABLE' AS kind, oid::regclass::text AS name FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
            AND (starts_with(relname, 'procrastinate_') OR relname = 'queue_schema')
        UNION ALL
        SELECT 2, 'FUNCTION', oid::regprocedure::text FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND starts_with(proname, 'procrastinate_')
        UNION ALL
        SELECT 3, 'TYPE', pg_type.oid::regtype::text FROM pg_type LEFT JOIN pg_class ON pg_class.oid = typrelid
        WHERE typnamespace = current_schema()::regnamespace AND starts_with(typname, 'procrastinate_')
            AND (typtype = 'e' OR relkind = 'c')
    ) AS found;
    IF statements IS NOT NULL THEN
        EXECUTE statements;
    END IF;
END
$$;
"""

STATES = """
-- What one write stores of a thread's states (checkpoints/packs.py): a run has one row, or several if it takes long.
-- `written` are checkpoints of earlier rows that this one holds writes of. The thread's latest state is the last one of
-- the last row that has any.
CREATE TABLE state_packs (
    workspace_id text NOT NULL,
    thread_id text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    namespace text NOT NULL,
    run_id text,
    saved_at timestamptz NOT NULL DEFAULT now(),
    checkpoints text[] NOT NULL,
    written text[] NOT NULL,
    pack bytea NOT NULL,
    PRIMARY KEY (workspace_id, thread_id, number)
);
-- Packs are compressed already: the server need not try again.
ALTER TABLE state_packs ALTER COLUMN pack SET STORAGE EXTERNAL;
CREATE INDEX state_packs_by_time ON state_packs (saved_at);

-- Steps are deleted by their age alone.
DROP VIEW threads_of_workspace;
ALTER TABLE threads DROP COLUMN thinned_until;
CREATE VIEW threads_of_workspace AS SELECT * FROM threads
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
"""

DOCUMENTS = """
-- Choosing another embedding model fills no second table any more (vectors/choosing.py).
DROP TABLE IF EXISTS chunks_next;
ALTER TABLE embedding_model DROP COLUMN next;

-- `unread`: what of a file is not in its document's text (`domain.documents.Unread`). `given`: what people gave it,
-- apart from what its file says of itself; NULL: from before this, then it is what the file does not say itself.
-- `former`: the names that it had before, which are forgotten with it. `brought_by`: NULL: a command, or from before.
ALTER TABLE documents ADD unread jsonb NOT NULL DEFAULT '[]', ADD given jsonb, ADD former text[] NOT NULL DEFAULT '{}',
    ADD brought_by text;
CREATE OR REPLACE VIEW documents_of_workspace AS SELECT * FROM documents
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
CREATE INDEX documents_by_bringer ON documents (brought_by) WHERE brought_by IS NOT NULL;
ALTER TABLE document_revisions ADD brought_by text;
CREATE INDEX document_revisions_by_bringer ON document_revisions (brought_by) WHERE brought_by IS NOT NULL;
ALTER TABLE api_keys ADD max_documents int, ADD max_stored_mb int;

-- Of a deleted document: what it had when it was deleted. Its content is known again.
ALTER TABLE document_marks ADD given jsonb, ADD content_hash text;
CREATE INDEX document_marks_by_hash ON document_marks (workspace_id, content_hash) WHERE content_hash IS NOT NULL;

-- `sidecar`: what stands beside the file. NULL as metadata: those of the document stay. A document keeps its id under
-- another name.
ALTER TABLE ingestions ADD sidecar jsonb NOT NULL DEFAULT '{}', ALTER metadata DROP NOT NULL,
    ALTER metadata DROP DEFAULT, ADD moved_from text, ADD brought_by text;
UPDATE ingestions SET metadata = NULL WHERE metadata = '{}';

-- A file belongs to one synced folder, however many it is in. A folder may hold others that are mounted, and that are
-- away at times.
DELETE FROM synced_files AS file USING synced_files AS other
WHERE other.workspace_id = file.workspace_id AND other.source = file.source AND other.folder > file.folder;
ALTER TABLE synced_files DROP CONSTRAINT synced_files_pkey, ADD PRIMARY KEY (workspace_id, source);
CREATE INDEX synced_files_by_folder ON synced_files (workspace_id, folder);
ALTER TABLE synced_files ADD mount text;
"""

ERASURES = """
-- What was said, compressed, of an erasure that has left something, which is looked for when it is repeated.
ALTER TABLE erasures ADD COLUMN needles bytea;
-- Runs that have ended show nothing any more: `run_documents` says what they read.
UPDATE accepted_runs SET showing = '{}' WHERE ended IS NOT NULL AND showing <> '{}';
"""

ASSISTANTS = """
-- `groups`: the same in all versions. `key`: what the name is compared by.
ALTER TABLE assistants ADD groups text[] NOT NULL DEFAULT '{}', ADD key text;
DROP INDEX assistants_by_name;
-- Its policy is made anew, with the groups in it (row_security.py).
DROP POLICY IF EXISTS of_workspace ON assistants;
"""

TERMS = f"""
-- `audience`: a number for `groups`, which may be too long for an index. The term {CHUNKS} stands for all chunks.
ALTER TABLE term_frequencies ADD audience bigint NOT NULL DEFAULT 0, ADD groups text[] NOT NULL DEFAULT '{{}}';
ALTER TABLE term_frequencies DROP CONSTRAINT term_frequencies_pkey, ADD PRIMARY KEY (workspace_id, term, audience);
-- Its policy is made anew, with the groups in it (row_security.py).
DROP POLICY IF EXISTS of_workspace ON term_frequencies;
INSERT INTO term_frequencies (workspace_id, term, chunks) SELECT workspace_id, {CHUNKS}, chunks FROM workspaces;
"""

# The audit log holds each name of what was changed by itself, so that it can be erased; and actions hold none.
# A name that was cut off cannot be erased any more.
AUDIT = r"""
ALTER TABLE audit_log RENAME target TO targets;
ALTER TABLE audit_log ALTER targets TYPE text[] USING
    CASE WHEN length(targets) < 1000 THEN string_to_array(targets, ', ')
    ELSE trim_array(string_to_array(targets, ', '), 1) END;
UPDATE audit_log SET targets = substring(action FROM '/documents/([^/]+)') || targets,
    action = regexp_replace(action, '(/documents)/[^/]+', '\1/{document_id}')
WHERE action ~ '/documents/[^/]'
"""

# What texts share with others (`domain.text.sketch`): those that documents hold, held, and held when deleted.
SKETCHED = ("documents", "document_revisions", "document_marks")

# The condition is that of the policies, which do not apply to the view's owner. An earlier text has the groups that it
# had, or those of its document.
SKETCHES = """
CREATE VIEW sketches_of_workspace AS SELECT * FROM (
    SELECT workspace_id, document_id, groups, sketch, true AS is_current FROM documents
    UNION ALL
    SELECT revision.workspace_id, revision.document_id, coalesce(nullif(own.groups, '{}'), document.groups),
        revision.sketch, false
    FROM document_revisions AS revision JOIN documents AS document
        ON (document.workspace_id, document.document_id) = (revision.workspace_id, revision.document_id)
        LEFT JOIN revision_groups AS own ON (own.workspace_id, own.document_id, own.revision)
            = (revision.workspace_id, revision.document_id, revision.revision)
    UNION ALL
    SELECT workspace_id, document_id, groups, sketch, false FROM document_marks AS mark
    WHERE NOT EXISTS (
        SELECT FROM documents
        WHERE documents.workspace_id = mark.workspace_id AND documents.document_id = mark.document_id
    )
) AS held WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE
"""

_LIST_THREADS = "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
_LIST_PACKS = """
    SELECT channel AS name, blob FROM checkpoint_blobs WHERE (thread_id, checkpoint_ns, version) = (%s, %s, '')
"""
_LIST_CHECKPOINTS = """
    SELECT checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints
    WHERE (thread_id, checkpoint_ns) = (%s, %s) ORDER BY checkpoint_id
"""
_INSERT_STATES = """
    INSERT INTO state_packs (workspace_id, thread_id, namespace, run_id, saved_at, checkpoints, written, pack)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_DROP_STATES = "DROP TABLE checkpoints, checkpoint_blobs, checkpoint_writes, checkpoint_migrations"

_LIST_ASSISTANTS = """
    SELECT workspace_id, assistant_id, version, current, name FROM assistants
    ORDER BY current DESC, updated_at
"""
_NAME = """
    UPDATE assistants SET name = %s, key = %s WHERE (workspace_id, assistant_id, version) = (%s, %s, %s)
"""
_NAME_INDEX = """
ALTER TABLE assistants ALTER key SET NOT NULL;
CREATE UNIQUE INDEX assistants_by_name ON assistants (workspace_id, key) WHERE current;
"""
_LIST_AUDIENCES = "SELECT DISTINCT workspace_id, groups FROM documents WHERE groups != '{}'"
_MOVE_TERMS = f"""
    WITH counted AS (
        SELECT term, count(*)::int AS chunks
        FROM chunk_terms JOIN documents USING (workspace_id, document_id), unnest(terms || {CHUNKS}) AS term
        WHERE workspace_id = %(workspace_id)s AND groups = %(groups)s GROUP BY term
    ), taken AS (
        UPDATE term_frequencies AS f SET chunks = f.chunks - counted.chunks FROM counted
        WHERE f.workspace_id = %(workspace_id)s AND f.term = counted.term AND f.audience = 0
    )
    INSERT INTO term_frequencies (workspace_id, term, audience, groups, chunks)
    SELECT %(workspace_id)s, term, %(audience)s, %(groups)s, chunks FROM counted
"""

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
_serde = JsonPlusSerializer()
_compress = zstandard.ZstdCompressor(level=3, write_checksum=True)

_Converted = tuple[list[str], list[str], str | None, bytes]
"""The ids of a pack's checkpoints and of those that it only holds writes of, its run, and the pack."""


def list_statements() -> list[str]:
    return [
        LEASES,
        MOVE_LEASES,
        LEASE_INDEXES,
        DROP_QUEUE,
        STATES,
        DOCUMENTS,
        ERASURES,
        ASSISTANTS,
        TERMS,
        AUDIT,
        *(f"ALTER TABLE {table} ADD sketch bigint[] NOT NULL DEFAULT '{{}}'" for table in SKETCHED),
        SKETCHES,
    ]


async def move_rows(connection: AsyncConnection[Any]) -> None:
    await _move_states(connection)
    await _name_assistants(connection)
    await _part_terms(connection)
    await _sketch_texts(connection)


async def _move_states(connection: AsyncConnection[Any]) -> None:
    """Move the states of 1.0.0, a thread at a time, and drop its tables."""
    cursor = connection.cursor(row_factory=dict_row)
    row = await (await cursor.execute("SELECT to_regclass('checkpoints') AS found")).fetchone()
    if row is None or row["found"] is None:
        return
    for thread in await (await cursor.execute(_LIST_THREADS)).fetchall():
        key, namespace = thread["thread_id"], thread["checkpoint_ns"]
        bodies = await (await cursor.execute(_LIST_PACKS, [key, namespace])).fetchall()
        rows = await (await cursor.execute(_LIST_CHECKPOINTS, [key, namespace])).fetchall()
        packs = _convert({row["name"]: bytes(row["blob"]) for row in bodies}, rows)
        # In the order of 1.0.0, which was that of the checkpoints' ids.
        for ids, written, run_id, body in sorted(packs, key=lambda pack: max(pack[0] + pack[1])):
            place = key.rpartition("/")[::2]
            saved_at = _find_time(max(ids + written))
            await cursor.execute(_INSERT_STATES, [*place, namespace, run_id, saved_at, ids, written, body])
    await cursor.execute(_DROP_STATES)


async def _name_assistants(connection: AsyncConnection[Any]) -> None:
    """Note the keys. Of assistants whose names are the same by now, the later ones get a number."""
    cursor = connection.cursor(row_factory=tuple_row)
    taken: dict[str, set[str]] = defaultdict(set)
    for workspace_id, assistant_id, version, current, name in await (await cursor.execute(_LIST_ASSISTANTS)).fetchall():
        number, wanted = 1, name
        while current and fold_name(name) in taken[workspace_id]:
            number += 1
            name = f"{wanted[:50]} ({number})"
        if current:
            taken[workspace_id].add(fold_name(name))
        await cursor.execute(_NAME, [name, fold_name(name), workspace_id, assistant_id, version])
    await cursor.execute(_NAME_INDEX)


async def _part_terms(connection: AsyncConnection[Any]) -> None:
    """Take what documents of groups have from the numbers of those without."""
    cursor = connection.cursor(row_factory=tuple_row)
    for workspace_id, groups in await (await cursor.execute(_LIST_AUDIENCES)).fetchall():
        moved = {"workspace_id": workspace_id, "groups": groups, "audience": number_audience(groups)}
        await cursor.execute(_MOVE_TERMS, moved)


async def _sketch_texts(connection: AsyncConnection[Any]) -> None:
    """Sketch the texts that are there, one at a time."""
    cursor = connection.cursor(row_factory=tuple_row)
    for table in SKETCHED[:2]:
        listed = await cursor.execute(f"SELECT workspace_id, document_id, revision FROM {table}")
        for key in await listed.fetchall():
            at = f"{table} WHERE (workspace_id, document_id, revision) = (%s, %s, %s)"
            [(text,)] = await (await cursor.execute(f"SELECT text FROM {at}", key)).fetchall()
            changed = at.replace(" WHERE", " SET sketch = %s WHERE")
            await cursor.execute(f"UPDATE {changed}", [sketch(text), *key])
    for table in SKETCHED:
        await cursor.execute(f"CREATE INDEX {table}_by_sketch ON {table} USING gin (workspace_id, sketch)")


def _convert(bodies: dict[str, bytes], rows: list[dict[str, Any]]) -> Iterator[_Converted]:
    """Yield the packs with all values that their checkpoints have."""
    packs = {name: _unpack(body) for name, body in bodies.items()}
    held = {
        (channel, version): (kind, value)
        for pack in packs.values()
        if pack is not None
        for channel, version, kind, value in pack[0]
    }
    known = {row["checkpoint_id"] for row in rows}
    for name, pack in packs.items():
        mine = [row for row in rows if row["checkpoint"].get("pack") == name]
        ids = [row["checkpoint_id"] for row in mine]
        needed = {each for row in mine for each in row["checkpoint"]["channel_versions"]}
        body, written = b"", []
        # What was damaged stays so, and its thread says it.
        if pack is not None and all(packs.get(each) is not None for each in needed):
            contents = {row["checkpoint_id"]: pack[1][row["checkpoint_id"]] for row in mine}
            versions = {place for content in contents.values() for place in _read_versions(content)}
            values = [(*place, *held[place]) for place in versions if place in held]
            checkpoints = {
                row["checkpoint_id"]: (row["parent_checkpoint_id"], _serde.dumps_typed(row["metadata"]), content)
                for row, content in zip(mine, contents.values(), strict=True)
            }
            writes = {
                checkpoint_id: [(task, path, blob) for task, path, _, blob in each]
                for checkpoint_id, each in pack[2].items()
                if checkpoint_id in known
            }
            written = [checkpoint_id for checkpoint_id in writes if checkpoint_id not in checkpoints]
            body = _compress.compress(ormsgpack.packb((values, checkpoints, writes)))
        if ids or written:
            yield ids, written, mine[-1]["metadata"].get("run_id") if mine else None, body


def _unpack(body: bytes) -> Any:
    """Return values, checkpoints and writes; None where the pack is damaged."""
    try:
        return ormsgpack.unpackb(zstandard.ZstdDecompressor().decompress(body))
    except (zstandard.ZstdError, ValueError):
        return None


def _read_versions(content: Any) -> Iterable[tuple[str, Any]]:
    """Return the channels of a checkpoint and their versions."""
    versions: dict[str, Any] = _serde.loads_typed(content)["channel_versions"]
    return versions.items()


def _find_time(checkpoint_id: str) -> datetime:
    """Return when the checkpoint was made. Its id is a UUID of version 6 (RFC 9562, section 5.6), which counts steps of
    100 ns since 15 October 1582."""
    bits = UUID(checkpoint_id).int
    return _EPOCH + timedelta(microseconds=(bits >> 80 << 12 | bits >> 64 & 0xFFF) // 10)
