"""Erases documents and threads from every table that holds them or quotes them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from psycopg import Rollback
from psycopg.types.json import Jsonb

from app.adapters.postgres.audit import erase_from_audit
from app.adapters.postgres.conversations.threads import MOST_ASKED
from app.adapters.postgres.erasure.search import search_tables
from app.adapters.postgres.erasure.states import unname_in_states
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from app.adapters.postgres.retention import DELETE_RUNS, DELETE_STATES, DELETE_TAPES, DELETE_THREADS, THESE, run
from domain.errors import ThreadBusy, UnknownThread
from domain.history.erasure import ERASED, Erasable, Erasure, Needles, PendingErasure
from domain.text.sentences import split_sentences

SENTENCES = 40
"""Sentences that are looked for afterwards, spread over the text."""
_SHORTEST = 25
"""Characters of a sentence that says enough to belong to one text."""

# Of a document that was deleted before, only the id is known; what runs quoted is erased with their citations. A name
# that another document has, too, is not this one's alone.
_READ_DOCUMENT: LiteralString = """
    SELECT CASE WHEN EXISTS (
        SELECT FROM documents AS other
        WHERE other.workspace_id = document.workspace_id AND other.source = document.source
            AND other.document_id <> document.document_id
    ) THEN '' ELSE source END AS source, title, text
    FROM documents AS document
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

# By the links of runs to what they were made from (domain/history/lineage.py). What a run says may come from the
# document if it cites or lists it, if a model was shown it, or if it drew on a turn of which this is so. Its question
# may repeat an earlier turn.
_FIND_TOLD: LiteralString = """
    WITH RECURSIVE told AS (
        SELECT run_id FROM runs JOIN run_documents AS document USING (workspace_id, run_id)
        WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s AND shown AND (
            usage <> '[]' OR document.revision = 0
            OR citations @> jsonb_build_array(jsonb_build_object('document_id', %(document_id)s::text))
        )
        UNION
        SELECT turn.run_id FROM told JOIN run_turns AS turn ON turn.earlier_run_id = told.run_id
        WHERE workspace_id = %(workspace_id)s AND drawn_on
    )
    SELECT run_id, thread_id, EXISTS (
        SELECT FROM run_turns AS turn
        WHERE turn.workspace_id = runs.workspace_id AND turn.run_id = runs.run_id
            AND turn.earlier_run_id IN (SELECT run_id FROM told)
    ) AS follows
    FROM runs WHERE workspace_id = %(workspace_id)s AND run_id IN (SELECT run_id FROM told)
"""

# The turns of those runs stand in the states and tapes of these.
_FIND_GIVEN: LiteralString = """
    SELECT DISTINCT run_id, thread_id FROM run_turns JOIN runs USING (workspace_id, run_id)
    WHERE workspace_id = %(workspace_id)s AND earlier_run_id = ANY(%(run_ids)s) AND NOT run_id = ANY(%(run_ids)s)
"""

# The document stands in their states and tapes: among the sources that were shown and not cited, or by its id, where
# the question or its mode named it.
_FIND_READ: LiteralString = """
    SELECT run_id, thread_id FROM run_documents JOIN runs USING (workspace_id, run_id)
    WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s AND NOT run_id = ANY(%(run_ids)s)
    UNION
    SELECT run_id, thread_id FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND NOT run_id = ANY(%(run_ids)s)
        AND position(%(document_id)s IN request::text) > 0
"""

_BLANK: Mapping[str, LiteralString] = {
    "runs": """
        UPDATE runs SET question = CASE WHEN run_id = ANY(%(following)s) THEN %(erased)s ELSE question END,
            standalone_question = %(erased)s, answer = CASE answer WHEN '' THEN '' ELSE %(erased)s END,
            queries = '[]', citations = '[]', outcome_reasons = '[]', warnings = '[]'
        WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)""",
    "accepted_runs": """
        UPDATE accepted_runs SET
            request = CASE WHEN run_id = ANY(%(following)s)
                THEN jsonb_set(request, '{turn,question}', to_jsonb(%(erased)s::text)) ELSE request
            END || '{"history": []}',
            ended = CASE ended ->> 'type' WHEN 'done' THEN ended || %(blank)s ELSE ended END,
            shown = shown || '{"sources": [], "corrections": []}'
        WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)""",
    "feedback": """
        UPDATE feedback SET comment = %(erased)s
        WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s) AND comment <> ''""",
    "threads": """
        UPDATE threads AS thread SET title = NULL,
            client_metadata = CASE WHEN client_metadata IS NOT NULL THEN '{}'::jsonb END,
            asked = coalesce(
                (
                    SELECT left(string_agg(request #>> '{turn,question}', E'\n' ORDER BY place), %(most_asked)s)
                    FROM accepted_runs AS run
                    WHERE run.workspace_id = thread.workspace_id AND run.thread_id = thread.thread_id
                ),
                ''
            )
        WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(told_in)s)""",
}
"""Blank what runs say that may come from the document, and what people say of it there."""

_BLANK_END = {
    "answer": ERASED,
    "standalone_question": ERASED,
    "citations": [],
    "outcome_reasons": [],
    "warnings": [],
    "framing": {"opening": 0, "closing": 0},
    "verification": {"status": "skipped", "claims": []},
}

# What only read or names the document, such as a scope. The id is a UUID, so that JSON has it as it is.
_UNNAME: tuple[LiteralString, ...] = (
    """UPDATE accepted_runs SET shown = jsonb_set(shown, '{sources}', coalesce(
           (
               SELECT jsonb_agg(source ORDER BY number)
               FROM jsonb_array_elements(shown -> 'sources') WITH ORDINALITY AS each (source, number)
               WHERE source ->> 'document_id' <> %(document_id)s
           ), '[]'
       ))
       WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s) AND shown IS NOT NULL""",
    """UPDATE runs SET scope = replace(scope::text, %(document_id)s, %(erased)s)::jsonb
       WHERE workspace_id = %(workspace_id)s AND position(%(document_id)s IN scope::text) > 0""",
    """UPDATE accepted_runs SET request = replace(request::text, %(document_id)s, %(erased)s)::jsonb,
           ended = replace(ended::text, %(document_id)s, %(erased)s)::jsonb,
           shown = replace(shown::text, %(document_id)s, %(erased)s)::jsonb,
           showing = array_remove(showing, %(document_id)s)
       WHERE workspace_id = %(workspace_id)s
           AND position(%(document_id)s IN concat(request::text, ended::text, shown::text, showing::text)) > 0""",
    """UPDATE assistants SET setup = replace(setup::text, %(document_id)s, %(erased)s)::jsonb
       WHERE workspace_id = %(workspace_id)s AND position(%(document_id)s IN setup::text) > 0""",
)

_DELETE_TAPES: LiteralString = """
    DELETE FROM tapes WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)
"""

_DELETE_TRACES: Mapping[str, LiteralString] = {
    "run_documents": """
        DELETE FROM run_documents WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s""",
    "document_marks": """
        WITH gone AS (
            DELETE FROM document_marks
            WHERE workspace_id = %(workspace_id)s AND (
                document_id = ANY(%(document_ids)s::uuid[]) OR document_id IN (
                    SELECT name FROM document_marks
                    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
                )
            )
            RETURNING revision
        )
        UPDATE workspaces SET forgotten_revision = greatest(forgotten_revision, gone.revision)
        FROM gone WHERE workspace_id = %(workspace_id)s""",
    "revision_groups": """
        DELETE FROM revision_groups
        WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])""",
    "synced_files": """
        DELETE FROM synced_files
        WHERE workspace_id = %(workspace_id)s AND (document_id = %(document_id)s OR source = ANY(%(sources)s))""",
    "ingestions": """
        DELETE FROM ingestions
        WHERE workspace_id = %(workspace_id)s AND ended_at IS NOT NULL
            AND (source = ANY(%(sources)s) OR report ->> 'document_id' = %(document_id)s)""",
}

_FIND_BRANCHES: LiteralString = """
    WITH RECURSIVE branch AS (
        SELECT thread_id FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s)
        UNION
        SELECT other.thread_id
        FROM branch JOIN (
            SELECT workspace_id, thread_id, unnest(array_append(copied_from, branch_of)) AS origin FROM threads
        ) AS other ON other.origin = branch.thread_id
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

_LIST_BEGUN: LiteralString = f"""
    SELECT run_id FROM accepted_runs WHERE workspace_id = %(workspace_id)s AND attempt > 0 AND {UNFINISHED}
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


_NOTE: LiteralString = """
    INSERT INTO erasures (workspace_id, kind, target, run_ids)
    VALUES (%(workspace_id)s, %(kind)s, %(target)s, %(run_ids)s)
    ON CONFLICT (workspace_id, kind, target) DO UPDATE SET run_ids = erasures.run_ids || excluded.run_ids
"""

_END: LiteralString = """
    DELETE FROM erasures WHERE workspace_id = %(workspace_id)s AND kind = %(kind)s AND target = %(target)s
"""

_LIST_PENDING: LiteralString = "SELECT workspace_id, kind, target, run_ids FROM erasures ORDER BY 1, 2, 3"


class PostgresEraser:
    """Implements `Eraser` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read_needles(self, workspace_id: str, document_id: str) -> Needles | None:
        ids = parse_ids([document_id])
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(_READ_DOCUMENT, document_ids=ids)
        if not rows:
            return None
        sentences = _sample(row["text"] for row in rows)
        async with open_session(self._pool, ALL_WORKSPACES) as everywhere:
            said = await everywhere.fetch(_IS_SAID_ELSEWHERE, sentences=sentences, document_ids=ids)
        elsewhere = {row["sentence"] for row in said}
        sources = {row["source"] for row in rows if row["source"]}
        unique = tuple(sentence for sentence in sentences if sentence not in elsewhere)
        return Needles(workspace_id, (str(ids[0]),), tuple(sources), unique)

    async def erase_document(self, workspace_id: str, needles: Needles, *, dry_run: bool = False) -> Erasure:
        [document_id] = needles.ids
        erasure = Erasure(needles)
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            told = await session.fetch(_FIND_TOLD, document_id=document_id)
            run_ids = [row["run_id"] for row in told]
            given = await session.fetch(_FIND_GIVEN, run_ids=run_ids)
            read = await session.fetch(_FIND_READ, document_id=document_id, run_ids=run_ids)
            branches = await session.fetch(_FIND_BRANCHES, thread_ids=[row["thread_id"] for row in (*told, *given)])
            thread_ids = sorted({row["thread_id"] for row in branches})
            branches = await session.fetch(_FIND_BRANCHES, thread_ids=[row["thread_id"] for row in read])
            only_read = sorted({row["thread_id"] for row in branches}.difference(thread_ids))
            await session.execute(_LOCK_THREADS, thread_ids=[*thread_ids, *only_read])
            if not dry_run and await session.fetch_one(_IS_BUSY, thread_ids=[*thread_ids, *only_read]) is not None:
                raise ThreadBusy
            erasure.run_ids = frozenset(row["run_id"] for row in (*told, *given, *read))
            tapes = await session.execute(_DELETE_TAPES, run_ids=list(erasure.run_ids))
            for table, statement in _BLANK.items():
                blanked = await session.execute(
                    statement,
                    run_ids=run_ids,
                    following=[row["run_id"] for row in told if row["follows"]],
                    told_in=sorted({row["thread_id"] for row in told}),
                    erased=ERASED,
                    blank=Jsonb(_BLANK_END),
                    most_asked=MOST_ASKED,
                )
                erasure.rows[table] += blanked.rowcount
            for statement in _UNNAME:
                await session.execute(
                    statement, document_id=document_id, erased=ERASED, run_ids=[row["run_id"] for row in read]
                )
            # The states of a conversation repeat its turns, so they go together: it goes on without them.
            states = await run(session, DELETE_STATES, **_name_threads(workspace_id, thread_ids))
            unnamed = await unname_in_states(session, only_read, document_id)
            erasure.rows.update({"tapes": tapes.rowcount, "state_packs": states.rows + unnamed})
            for table, statement in _DELETE_TRACES.items():
                gone = await session.execute(
                    statement,
                    document_id=document_id,
                    document_ids=parse_ids([document_id]),
                    sources=list(needles.sources),
                )
                # Deleting the document has added one of these.
                if table != "revision_groups":
                    erasure.rows[table] += gone.rowcount
            await session.execute(_NOTE, kind="document", target=document_id, run_ids=list(erasure.run_ids))
            if dry_run:
                raise Rollback
        erasure.rows["audit_log"] += await erase_from_audit(
            self._pool, workspace_id, (document_id, *needles.sources), dry_run=dry_run
        )
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
            these = _name_threads(workspace_id, thread_ids)
            tapes = await run(session, DELETE_TAPES, **these)
            gone = await run(session, DELETE_RUNS, **these)
            states = await run(session, DELETE_STATES, **these)
            accepted = await session.execute(_DELETE_ACCEPTED, **these)
            threads = await run(session, DELETE_THREADS, **these)
            erasure.rows.update(
                {
                    "tapes": tapes.rows,
                    "runs": gone.rows,
                    "state_packs": states.rows,
                    "accepted_runs": accepted.rowcount,
                    "threads": threads.rows,
                }
            )
            await session.execute(_NOTE, kind="thread", target=thread_id, run_ids=list(erasure.run_ids))
            if dry_run:
                raise Rollback
        return erasure

    async def begin(self, workspace_id: str, document_id: str) -> None:
        async with open_session(self._pool, workspace_id) as session:
            await session.execute(_NOTE, kind="document", target=document_id, run_ids=[])

    async def list_begun(self, workspace_id: str) -> frozenset[str]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(_LIST_BEGUN)
        return frozenset(row["run_id"] for row in rows)

    async def end(self, workspace_id: str, kind: Erasable, target: str) -> None:
        async with open_session(self._pool, workspace_id) as session:
            await session.execute(_END, kind=kind, target=target)

    async def list_pending(self) -> Sequence[PendingErasure]:
        async with open_session(self._pool, ALL_WORKSPACES) as session:
            rows = await session.fetch(_LIST_PENDING)
        return [PendingErasure(**row | {"run_ids": frozenset(row["run_ids"])}) for row in rows]

    async def search(self, needles: Needles) -> tuple[int, Counter[str]]:
        return await search_tables(self._pool, needles)


def _name_threads(workspace_id: str, thread_ids: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of `THESE`."""
    return {"workspaces": [workspace_id] * len(thread_ids), "thread_ids": thread_ids}


def _sample(texts: Any) -> list[str]:
    sentences = dict.fromkeys(
        text[start:end] for text in texts for start, end in split_sentences(text) if _is_telling(text[start:end])
    )
    step = max(1, len(sentences) // SENTENCES)
    return list(sentences)[::step][:SENTENCES]


def _is_telling(sentence: str) -> bool:
    """Return True for a sentence that JSON does not escape, and that is long enough to belong to one text."""
    return len(sentence) >= _SHORTEST and not set(sentence) & set('"\\\n\t')
