"""Erases documents and threads from every table that holds them or quotes them."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, LiteralString

from psycopg import Rollback
from psycopg.types.json import Jsonb

from app.adapters.postgres.audit import erase_from_audit
from app.adapters.postgres.erasure.redaction import Redactor
from app.adapters.postgres.erasure.search import holds, search_tables
from app.adapters.postgres.erasure.states import redact_states
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from app.adapters.postgres.retention.deletion import DELETE_TAPES, THESE, delete_states, name_threads, run
from app.adapters.postgres.retention.store import DELETE_RUNS, DELETE_THREADS
from domain.errors import ThreadBusy, UnknownThread
from domain.history.erasure import Erasure, Needles
from domain.text.sentences import split_sentences
from domain.threads import state_key

SENTENCES = 40
"""Sentences that are looked for afterwards, spread over the text."""
_SHORTEST = 25
"""Characters of a sentence that says enough to belong to one text."""

# Of a document that was deleted before, only the id is known; what runs quoted is erased with their citations.
_READ_DOCUMENT: LiteralString = """
    SELECT source, title, text FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    UNION ALL
    SELECT '', title, text FROM document_revisions
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    UNION ALL
    SELECT '', '', '' FROM document_marks
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

_IS_SAID_ELSEWHERE: LiteralString = """
    SELECT n.sentence FROM unnest(%(sentences)s::text[]) AS n (sentence)
    WHERE EXISTS (
        SELECT FROM documents
        WHERE NOT document_id = ANY(%(document_ids)s::uuid[]) AND position(n.sentence IN text) > 0
    )
"""

# What was written from the document cites it. Lists of the library and abstentions only say its title.
_TOLD: LiteralString = """
    SELECT run_id, thread_id, answer, citations, position(%(document_id)s IN citations::text) > 0 AS cites FROM runs
    WHERE workspace_id = %(workspace_id)s AND (
        position(%(document_id)s IN citations::text) > 0
        OR (route = 'about_library' OR outcome = 'abstained')
            AND EXISTS (SELECT FROM unnest(%(titles)s::text[]) AS title WHERE position(title IN answer) > 0))
"""

_RUN_COLUMNS = (
    "question", "standalone_question", "answer", "queries", "scope", "citations", "outcome_reasons",
    "warnings", "degraded", "forked_from",
)  # fmt: skip

_LIST_RUNS: LiteralString = """
    SELECT run_id, thread_id, question, standalone_question, answer, queries, scope, citations,
        outcome_reasons, warnings, degraded, forked_from
    FROM runs WHERE workspace_id = %(workspace_id)s
"""

_UPDATE_RUN: LiteralString = """
    UPDATE runs SET question = %(question)s, standalone_question = %(standalone_question)s, answer = %(answer)s,
        queries = %(queries)s, scope = %(scope)s, citations = %(citations)s,
        outcome_reasons = %(outcome_reasons)s, warnings = %(warnings)s, degraded = %(degraded)s,
        forked_from = %(forked_from)s
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_LIST_ACCEPTED: LiteralString = """
    SELECT run_id, thread_id, request, ended, shown FROM accepted_runs WHERE workspace_id = %(workspace_id)s
"""

_UPDATE_ACCEPTED: LiteralString = """
    UPDATE accepted_runs SET request = %(request)s, ended = %(ended)s, shown = %(shown)s
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_LIST_THREADS: LiteralString = """
    SELECT thread_id, title, asked, client_metadata FROM threads WHERE workspace_id = %(workspace_id)s
"""

_LIST_FEEDBACK: LiteralString = """
    SELECT run_id, thread_id, comment FROM feedback JOIN runs USING (workspace_id, run_id)
    WHERE workspace_id = %(workspace_id)s AND comment <> ''
"""

_UPDATE_FEEDBACK: LiteralString = """
    UPDATE feedback SET comment = %(comment)s WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_UPDATE_THREAD: LiteralString = """
    UPDATE threads SET title = %(title)s, asked = %(asked)s, client_metadata = %(client_metadata)s
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_LIST_TAPES: LiteralString = "SELECT run_id, tape FROM tapes WHERE workspace_id = %(workspace_id)s"

_DELETE_TAPE: LiteralString = "DELETE FROM tapes WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)"

# The file would come back with a lock or a report that names it.
_DELETE_TRACES: Mapping[str, LiteralString] = {
    "run_documents": """
        DELETE FROM run_documents WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s""",
    "document_marks": """
        WITH gone AS (
            DELETE FROM document_marks
            WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
            RETURNING revision
        )
        UPDATE workspaces SET forgotten_revision = greatest(forgotten_revision, gone.revision)
        FROM gone WHERE workspace_id = %(workspace_id)s""",
    "synced_files": """
        DELETE FROM synced_files
        WHERE workspace_id = %(workspace_id)s AND (document_id = %(document_id)s OR source = ANY(%(sources)s))""",
    "ingestions": """
        DELETE FROM ingestions
        WHERE workspace_id = %(workspace_id)s AND ended_at IS NOT NULL
            AND (source = ANY(%(sources)s) OR report ->> 'document_id' = %(document_id)s)""",
    "procrastinate_jobs": """
        DELETE FROM procrastinate_jobs
        WHERE status NOT IN ('todo', 'doing')
            AND lock = ANY(SELECT 'source ' || %(workspace_id)s || ' ' || unnest(%(sources)s::text[]))""",
}

_FIND_BRANCHES: LiteralString = """
    WITH RECURSIVE branch AS (
        SELECT thread_id FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s)
        UNION
        SELECT other.thread_id
        FROM branch JOIN (
            SELECT workspace_id, thread_id, forked_from ->> 'thread_id' AS branch_of FROM runs
            UNION ALL SELECT workspace_id, thread_id, branch_of FROM threads
        ) AS other ON other.branch_of = branch.thread_id
        WHERE other.workspace_id = %(workspace_id)s
    )
    SELECT thread_id FROM branch
"""

_LOCK_THREADS: LiteralString = """
    SELECT FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s)
    ORDER BY thread_id FOR UPDATE
"""

_IS_BUSY: LiteralString = f"""
    SELECT FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s) AND {UNFINISHED} LIMIT 1
"""

_LIST_THREAD_RUNS: LiteralString = """
    SELECT run_id, question FROM runs WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s)
"""

_IS_ASKED_ELSEWHERE: LiteralString = """
    SELECT n.sentence FROM unnest(%(sentences)s::text[]) AS n (sentence)
    WHERE EXISTS (
        SELECT FROM runs
        WHERE NOT (workspace_id = %(within)s AND thread_id = ANY(%(thread_ids)s))
            AND position(n.sentence IN runs::text) > 0
    ) OR EXISTS (SELECT FROM documents WHERE position(n.sentence IN text) > 0)
"""

_DELETE_ACCEPTED: LiteralString = f"DELETE FROM accepted_runs WHERE {THESE}"

_DELETE_JOBS: LiteralString = """
    DELETE FROM procrastinate_jobs
    WHERE args ->> 'workspace_id' = %(workspace_id)s AND args ->> 'run_id' = ANY(%(run_ids)s)
"""


class PostgresEraser:
    """Implements `Eraser` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._said: dict[str, tuple[list[str], list[str]]] = {}
        """Titles and texts of the documents that are being erased, by id."""

    async def read_needles(self, workspace_id: str, document_id: str) -> Needles | None:
        ids = parse_ids([document_id])
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(_READ_DOCUMENT, document_ids=ids)
        if not rows:
            return None
        document_id = str(ids[0])
        sentences = _sample(row["text"] for row in rows)
        async with open_session(self._pool, ALL_WORKSPACES) as everywhere:
            said = await everywhere.fetch(_IS_SAID_ELSEWHERE, sentences=sentences, document_ids=ids)
        elsewhere = {row["sentence"] for row in said}
        sources = {row["source"] for row in rows if row["source"]}
        self._said[document_id] = [row["title"] for row in rows], [row["text"] for row in rows]
        unique = tuple(sentence for sentence in sentences if sentence not in elsewhere)
        return Needles(workspace_id, (document_id,), tuple(sources), unique)

    async def erase_document(self, workspace_id: str, needles: Needles, *, dry_run: bool = False) -> Erasure:
        [document_id] = needles.ids
        titles, texts = self._said.pop(document_id, ([], []))
        erasure = Erasure(needles)
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            told = await session.fetch(_TOLD, document_id=document_id, titles=[title for title in titles if title])
            cited = [row for row in told if row["cites"]]
            for row in cited:
                quoted = [each for each in row["citations"] if each.get("document_id") == document_id]
                titles += [each["title"] for each in quoted]
                texts += [each["text"] for each in quoted]
            names = (document_id, *needles.sources)
            words = Redactor(names, titles, texts, [row["answer"] for row in cited])
            fields = Redactor([document_id], [], [], [])
            branches = await session.fetch(_FIND_BRANCHES, thread_ids=[row["thread_id"] for row in told])
            thread_ids = {row["thread_id"] for row in branches}

            def pick(thread_id: str) -> Redactor:
                """Only where the document was spoken of, its words come from it."""
                return words if thread_id in thread_ids else fields

            run_ids = frozenset(row["run_id"] for row in cited)
            ids = parse_ids([document_id])
            for table, statement in _DELETE_TRACES.items():
                gone = await session.execute(
                    statement, document_id=document_id, document_ids=ids, sources=list(needles.sources)
                )
                erasure.rows[table] += gone.rowcount
            erasure.rows["tapes"] += await _delete_tapes(session, needles)
            changed = await _redact_runs(session, pick, erasure.rows)
            erasure.rows.update(await redact_states(session, pick, run_ids))
            if dry_run:
                raise Rollback
        erasure.rows["audit_log"] += await erase_from_audit(self._pool, workspace_id, names, dry_run=dry_run)
        erasure.run_ids = run_ids | changed
        return erasure

    async def erase_thread(self, workspace_id: str, thread_id: str, *, dry_run: bool = False) -> Erasure:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            rows = await session.fetch(_FIND_BRANCHES, thread_ids=[thread_id])
            thread_ids = [row["thread_id"] for row in rows]
            if not thread_ids:
                raise UnknownThread
            await session.execute(_LOCK_THREADS, thread_ids=thread_ids)
            if await session.fetch_one(_IS_BUSY, thread_ids=thread_ids) is not None:
                raise ThreadBusy
            runs = await session.fetch(_LIST_THREAD_RUNS, thread_ids=thread_ids)
            sentences = [row["question"] for row in runs if _is_telling(row["question"])][:SENTENCES]
            async with open_session(self._pool, ALL_WORKSPACES) as everywhere:
                said = await everywhere.fetch(
                    _IS_ASKED_ELSEWHERE, sentences=sentences, within=workspace_id, thread_ids=thread_ids
                )
            elsewhere = {row["sentence"] for row in said}
            unique = tuple(sentence for sentence in sentences if sentence not in elsewhere)
            erasure = Erasure(Needles(workspace_id, tuple(thread_ids), sentences=unique))
            erasure.run_ids = frozenset(row["run_id"] for row in runs)
            keys = [state_key(workspace_id, each) for each in thread_ids]
            these = name_threads(keys)
            tapes = await run(session, DELETE_TAPES, **these)
            gone = await run(session, DELETE_RUNS, **these)
            states = await delete_states(session, keys)
            accepted = await session.execute(_DELETE_ACCEPTED, **these)
            jobs = await session.execute(_DELETE_JOBS, run_ids=list(erasure.run_ids))
            threads = await session.execute(DELETE_THREADS, **these)
            erasure.rows.update(
                {
                    "tapes": tapes.rows,
                    "runs": gone.rows,
                    "checkpoints": states.states,
                    "checkpoint_blobs and checkpoint_writes": states.values,
                    "accepted_runs": accepted.rowcount,
                    "procrastinate_jobs": jobs.rowcount,
                    "threads": threads.rowcount,
                }
            )
            if dry_run:
                raise Rollback
        return erasure

    async def search(self, needles: Needles) -> tuple[int, Counter[str]]:
        return await search_tables(self._pool, needles)


async def _delete_tapes(session: Session, needles: Needles) -> int:
    """Delete the tapes of runs that read the document: a replay would say it again."""
    rows = await session.fetch(_LIST_TAPES)
    gone = [row["run_id"] for row in rows if holds(bytes(row["tape"]), needles.texts)]
    await session.execute(_DELETE_TAPE, run_ids=gone)
    return len(gone)


async def _redact_runs(session: Session, pick: Callable[[str], Redactor], rows: Counter[str]) -> frozenset[str]:
    """Redact the log of runs, the accepted ones, what threads are called, and what readers say. `pick` has the redactor
    for a thread. Returns the runs that changed."""
    changed: set[str] = set()
    for row in await session.fetch(_LIST_RUNS):
        redactor = pick(row["thread_id"])
        redacted = {name: redactor.redact(row[name]) for name in _RUN_COLUMNS}
        if any(redacted[name] is not row[name] for name in _RUN_COLUMNS):
            await session.execute(_UPDATE_RUN, run_id=row["run_id"], **_wrap(redacted))
            rows["runs"] += 1
            changed.add(row["run_id"])
    for row in await session.fetch(_LIST_ACCEPTED):
        redactor = pick(row["thread_id"])
        redacted = {name: redactor.redact(row[name]) for name in ("request", "ended", "shown")}
        if any(redacted[name] is not row[name] for name in redacted):
            await session.execute(_UPDATE_ACCEPTED, run_id=row["run_id"], **_wrap(redacted))
            rows["accepted_runs"] += 1
            changed.add(row["run_id"])
    for row in await session.fetch(_LIST_THREADS):
        redactor = pick(row["thread_id"])
        asked = "\n".join(str(redactor.redact(question)) for question in row["asked"].split("\n"))
        redacted = {"asked": asked, **{name: redactor.redact(row[name]) for name in ("title", "client_metadata")}}
        if any(redacted[name] != row[name] for name in redacted):
            await session.execute(_UPDATE_THREAD, thread_id=row["thread_id"], **_wrap(redacted))
            rows["threads"] += 1
    for row in await session.fetch(_LIST_FEEDBACK):
        comment = pick(row["thread_id"]).redact(row["comment"])
        if comment != row["comment"]:
            await session.execute(_UPDATE_FEEDBACK, run_id=row["run_id"], comment=comment)
            rows["feedback"] += 1
    return frozenset(changed)


def _wrap(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Jsonb(value) if isinstance(value, list | dict) else value for name, value in values.items()}


def _sample(texts: Any) -> list[str]:
    sentences = dict.fromkeys(
        text[start:end] for text in texts for start, end in split_sentences(text) if _is_telling(text[start:end])
    )
    step = max(1, len(sentences) // SENTENCES)
    return list(sentences)[::step][:SENTENCES]


def _is_telling(sentence: str) -> bool:
    """Return True for a sentence that JSON does not escape, and that is long enough to belong to one text."""
    return len(sentence) >= _SHORTEST and not set(sentence) & set('"\\\n\t')
