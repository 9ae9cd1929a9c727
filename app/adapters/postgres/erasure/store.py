"""Erases documents and threads from every table that holds them or quotes them."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, LiteralString

import orjson
import zstandard
from psycopg import Rollback

from app.adapters.postgres.audit import erase_from_audit
from app.adapters.postgres.conversations.threads import MOST_ASKED
from app.adapters.postgres.erasure.search import ASSISTANT_PROSE, RUN_PROSE, match_filters, match_prose, search_tables
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from app.adapters.postgres.retention import DELETE_RUNS, DELETE_STATES, DELETE_TAPES, DELETE_THREADS, THESE, delete, run
from domain.errors import ThreadBusy, UnknownThread
from domain.history.erasure import ERASED, Erasable, Erasure, Found, Needles, write_notice
from domain.history.repeats import simplify_blocks
from domain.text.blocks import blank_struck, plain_text
from domain.text.sentences import split_sentences
from domain.text.starters import LONGEST_READ, make_starters

SENTENCES = 40
"""Sentences that are looked for afterwards, spread over the text."""
_SHORTEST = 25
"""Characters of a sentence that says enough to belong to one text."""

_KEPT = ("ids", "sources", "sentences", "tokens")
"""What is kept of needles, besides the text, with an erasure until it ends."""

_ESCAPED = re.compile(r'["\\\n\t]')
"""What JSON escapes."""
_HEADING = re.compile(r"^#{1,6} .*", re.MULTILINE)
_SIGNS = re.compile(r"\*+|^[ \t]*(?:[-+]|\d+[.)])[ \t]+", re.MULTILINE)
"""What Markdown adds to a text, besides what `plain_text` leaves out."""
_TOKEN = re.compile(r"(?=\S*\d)[^\W_](?:\w|[.,:/-](?=\w)){4,}")
"""Five characters or more with a digit."""

# Of a document that was deleted before, only the id is known; what runs quoted is erased with their citations. A name
# that another document has, too, is not this one's alone.
_READ_DOCUMENT: LiteralString = """
    SELECT source, text, said, NULL::bytea AS needles FROM (
        SELECT document_id, text, concat_ws(E'\n\n', title, (
            SELECT string_agg(value #>> '{}', E'\n\n') FROM jsonb_path_query(metadata, 'strict $.**') AS value
            WHERE jsonb_typeof(value) IN ('number', 'string')
        )) AS said, CASE WHEN EXISTS (
            SELECT FROM documents AS other
            WHERE other.workspace_id = document.workspace_id AND other.source = name
                AND other.document_id <> document.document_id
        ) THEN '' ELSE name END AS source
        FROM documents AS document, unnest(array_append(former, source)) AS name WHERE workspace_id = %(workspace_id)s
        UNION ALL
        SELECT document_id, text, title, '' FROM document_revisions WHERE workspace_id = %(workspace_id)s
        UNION ALL
        SELECT document_id, '', '', '' FROM document_marks WHERE workspace_id = %(workspace_id)s
    ) AS known
    WHERE document_id = %(id)s::text::uuid AND may_read(%(workspace_id)s, %(id)s::text, 0, %(groups)s::text[])
    UNION ALL
    SELECT '', '', '', needles FROM erasures
    WHERE workspace_id = %(workspace_id)s AND kind IN ('document', 'left', 'forgotten')
        AND target IN (%(id)s, md5(%(id)s))
"""

# In another document; or in a conversation other than these.
_IS_SAID_ELSEWHERE: LiteralString = """
    SELECT n.said FROM unnest(%(said)s::text[]) AS n (said)
    WHERE EXISTS (
        SELECT FROM (
            SELECT document_id, text FROM documents UNION ALL SELECT document_id, text FROM document_revisions
        ) AS held
        WHERE document_id IS DISTINCT FROM %(id)s::text::uuid AND position(n.said IN text) > 0
    ) OR %(id)s::text IS NULL AND EXISTS (
        SELECT FROM runs
        WHERE NOT (workspace_id = %(within)s AND thread_id = ANY(%(thread_ids)s::text[]))
            AND position(n.said IN runs::text) > 0
        UNION ALL SELECT FROM set_questions AS kept
        WHERE position(n.said IN kept::text) > 0 AND NOT EXISTS (
            SELECT FROM runs
            WHERE workspace_id = kept.workspace_id AND run_id = kept.id
                AND workspace_id = %(within)s AND thread_id = ANY(%(thread_ids)s::text[])
        )
    )
"""

# By the links of runs to what they were made from (domain/history/lineage.py). What a run says may come from the
# document (`is_told`) if it cites or lists it, if a model was shown it, if it drew on a turn of which this is so, or if
# a search found it there. Its question may repeat an earlier turn, or was hidden with the document
# (`is_asked`). In states and tapes stand also what was only read, the turns that a run was given, and documents that
# the question or its mode named.
_FIND_RUNS: LiteralString = f"""
    WITH RECURSIVE told AS (
        SELECT run_id FROM runs JOIN run_documents AS document USING (workspace_id, run_id)
        WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s AND shown AND (
            usage <> '[]' OR document.revision = 0
            OR citations @> jsonb_build_array(jsonb_build_object('document_id', %(document_id)s::text))
        )
        UNION
        SELECT unnest(%(saying)s::text[])
        UNION
        SELECT turn.run_id FROM told JOIN run_turns AS turn ON turn.earlier_run_id = told.run_id
        WHERE workspace_id = %(workspace_id)s AND drawn_on
    ),
    given AS (
        SELECT run_id, bool_or(drawn_on) AS drawn_on FROM run_turns
        WHERE workspace_id = %(workspace_id)s AND earlier_run_id IN (SELECT run_id FROM told)
        GROUP BY run_id
    )
    SELECT run_id, thread_id, {UNFINISHED} AS is_busy, is_told,
        is_told AND (given IS NOT NULL OR run_id = ANY(%(saying)s) OR EXISTS (
            SELECT FROM revision_groups
            WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s::text::uuid AND groups <> '{{}}'
        )) AS is_asked
    FROM accepted_runs AS run LEFT JOIN given USING (run_id),
        LATERAL (SELECT run_id IN (SELECT run_id FROM told) AS is_told) AS telling
    WHERE workspace_id = %(workspace_id)s AND (
        is_told OR given IS NOT NULL
        OR run_id IN (
            SELECT run_id FROM run_documents
            WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s
        )
        OR position(%(document_id)s IN concat(request::text, showing::text)) > 0
        OR request::text ~ %(filtering)s::text OR {RUN_PROSE} ~ %(prose)s::text
    )
"""

# Filters and scopes that name it name nothing then. The id is a UUID, so that JSON has it as it is.
_UNNAME: LiteralString = """
    regexp_replace(
        replace({0}::text, %(document_id)s, %(erased)s), coalesce(%(filtering)s, '$^'), %(erased)s, 'g'
    )::jsonb
"""

_BLANK: Mapping[str, LiteralString] = {
    "runs": f"""
        UPDATE runs SET queries = '[]', scope = {_UNNAME.format("scope")},
            question = CASE WHEN run_id = ANY(%(asked)s) THEN %(erased)s ELSE question END,
            standalone_question = CASE WHEN is_told THEN %(erased)s ELSE question END,
            answer = CASE WHEN is_told AND answer <> '' THEN %(notice)s ELSE answer END,
            citations = CASE WHEN is_told THEN '[]' ELSE citations END,
            outcome_reasons = CASE WHEN is_told THEN '[]' ELSE outcome_reasons END,
            warnings = CASE WHEN is_told THEN '[]' ELSE warnings END
        FROM (SELECT unnest(%(run_ids)s::text[]) AS read_by) AS reading,
            LATERAL (SELECT read_by = ANY(%(told)s) AS is_told) AS telling
        WHERE workspace_id = %(workspace_id)s AND run_id = read_by""",
    "accepted_runs": f"""
        UPDATE accepted_runs SET showing = '{{}}',
            shown = (shown || '{{"sources": [], "corrections": []}}') - 'tools',
            request = CASE WHEN run_id = ANY(%(asked)s)
                THEN jsonb_set(unnamed, '{{turn,question}}', to_jsonb(%(erased)s::text)) ELSE unnamed
            END || CASE WHEN is_told THEN jsonb_build_object(
                'history', '[]'::jsonb,
                'noted', coalesce(request -> 'noted', '{{}}') - '{{metadata,message_id}}'::text[]
            ) ELSE '{{}}' END,
            ended = CASE ended ->> 'type' WHEN 'done'
                THEN ended || jsonb_build_object('standalone_question', request #> '{{turn,question}}')
                    || CASE WHEN is_told THEN
                        jsonb_build_object('answer', %(notice)s::text, 'standalone_question', %(erased)s::text)
                        || '{{"citations": [], "outcome_reasons": [], "warnings": []}}'
                        || '{{"framing": {{"opening": 0, "closing": 0}}}}'
                        || '{{"verification": {{"status": "skipped", "claims": []}}}}'
                    ELSE '{{}}' END
                ELSE ended
            END
        FROM (
            SELECT run_id AS read_by, run_id = ANY(%(told)s) AS is_told, coalesce(
                jsonb_set(named, '{{turn,profile,generate,system_instructions}}', to_jsonb(
                    regexp_replace({RUN_PROSE}, %(prose)s, %(erased)s, 'g')
                )),
                named
            ) AS unnamed
            FROM accepted_runs, LATERAL (SELECT {_UNNAME.format("request")} AS named) AS naming
            WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)
        ) AS reading
        WHERE workspace_id = %(workspace_id)s AND run_id = read_by""",
    "feedback": """
        UPDATE feedback SET comment = %(erased)s
        WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(told)s) AND comment <> ''""",
    "set_questions": """
        DELETE FROM set_questions
        WHERE workspace_id = %(workspace_id)s AND (
            id = ANY(%(told)s) OR %(document_id)s::text = ANY(document_ids) OR EXISTS (
                SELECT FROM unnest(%(texts)s::text[]) AS said
                WHERE position(said IN concat_ws(chr(10), question, array_to_string(answers, chr(10)))) > 0
            )
        )""",
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
    "assistants": f"""
        UPDATE assistants SET description = regexp_replace(description, %(prose)s, %(erased)s, 'g'),
            metadata = regexp_replace(metadata::text, %(prose)s, %(erased)s, 'g')::jsonb,
            setup = {_UNNAME.format("setup")} || CASE WHEN setup ? 'instructions' THEN jsonb_build_object(
                'instructions', regexp_replace(setup ->> 'instructions', %(prose)s, %(erased)s, 'g')
            ) ELSE '{{}}' END
        WHERE workspace_id = %(workspace_id)s AND (
            position(%(document_id)s IN setup::text) > 0 OR setup::text ~ %(filtering)s::text
            OR {ASSISTANT_PROSE} ~ %(prose)s::text
        )""",
    "tapes": "DELETE FROM tapes WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)",
}
"""Erase what runs hold of the document; what they say, where it may come from it; and what people say of them there."""

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

_LIST_BUSY: LiteralString = f"""
    SELECT DISTINCT thread_id FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s) AND {UNFINISHED}
"""

_LIST_BEGUN: LiteralString = f"""
    SELECT run_id FROM accepted_runs WHERE workspace_id = %(workspace_id)s AND attempt > 0 AND {UNFINISHED}
"""

# With what people made of their questions in sets.
_LIST_THREAD_RUNS: LiteralString = """
    SELECT run_id, concat_ws(chr(10), run.question, kept.question, array_to_string(kept.answers, chr(10))) AS said
    FROM runs AS run LEFT JOIN set_questions AS kept ON kept.workspace_id = run.workspace_id AND kept.id = run.run_id
    WHERE run.workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s)
"""

_DELETE_THREADS: Mapping[str, LiteralString] = {
    "set_questions": delete(
        "set_questions",
        f"(workspace_id, id) IN (SELECT workspace_id, run_id FROM accepted_runs WHERE {THESE})",
    ),
    "tapes": DELETE_TAPES,
    "runs": DELETE_RUNS,
    "state_packs": DELETE_STATES,
    "accepted_runs": delete("accepted_runs", THESE),
    "threads": DELETE_THREADS,
}

_NOTE: LiteralString = """
    INSERT INTO erasures (workspace_id, kind, target, run_ids, needles)
    VALUES (%(workspace_id)s, %(kind)s, %(target)s, %(run_ids)s, %(needles)s)
    ON CONFLICT (workspace_id, kind, target) DO UPDATE
    SET run_ids = erasures.run_ids || excluded.run_ids, needles = coalesce(excluded.needles, erasures.needles)
"""

_DROP_NEEDLES: LiteralString = """
    UPDATE erasures SET needles = NULL
    WHERE workspace_id = %(workspace_id)s AND kind = %(kind)s AND target = %(target)s
"""

_UNNOTE: LiteralString = """
    DELETE FROM erasures WHERE workspace_id = %(workspace_id)s AND kind = %(kind)s AND target = %(target)s
"""

# Of a document that is forgotten, a digest stays.
_END: LiteralString = f"""
    WITH ended AS ({_UNNOTE})
    INSERT INTO erasures (workspace_id, kind, target, run_ids)
    SELECT %(workspace_id)s, 'forgotten', md5(%(target)s), '{{}}' WHERE %(kind)s = 'document'
    ON CONFLICT DO NOTHING
"""

_LIST_PENDING: LiteralString = """
    SELECT workspace_id, kind, target, run_ids, needles FROM erasures
    WHERE kind IN ('document', 'thread') ORDER BY 1, 2, 3
"""


class PostgresEraser:
    """Implements `Eraser` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read_needles(
        self, workspace_id: str, document_id: str, asking: frozenset[str] | None = None
    ) -> Needles | None:
        found = parse_ids([document_id])
        if not found:
            return None
        named, groups = str(found[0]), None if asking is None else sorted(asking)
        rows = await self._pool.fetch(workspace_id, _READ_DOCUMENT, id=named, groups=groups)
        if not rows:
            return None
        kept = [_unpack(workspace_id, named, row["needles"]) for row in rows if row["needles"]]
        texts = list(dict.fromkeys(row["text"] for row in rows))
        text, said = await asyncio.to_thread(_read_texts, [*texts, *(row["said"] for row in rows)], texts)
        elsewhere = await self._find_elsewhere([*said["sentences"], *said["tokens"]], workspace_id, document_id=named)

        def join(name: str, more: Iterable[str]) -> tuple[str, ...]:
            known = [each for needles in kept for each in getattr(needles, name)]
            return tuple(dict.fromkeys([*known, *(each for each in more if each and each not in elsewhere)]))

        return Needles(
            workspace_id,
            (named,),
            join("sources", (row["source"] for row in rows)),
            join("sentences", said["sentences"]),
            join("tokens", said["tokens"]),
            "\n".join(dict.fromkeys(filter(None, (text, *(needles.text for needles in kept))))),
        )

    async def _find_elsewhere(
        self, said: Sequence[str], within: str, thread_ids: Sequence[str] = (), document_id: str | None = None
    ) -> Set[str]:
        """Return what of this others say too, than the threads or the document."""
        values = {"said": said, "within": within, "thread_ids": list(thread_ids), "id": document_id}
        return {
            row["said"] for row in await self._pool.fetch(ALL_WORKSPACES, _IS_SAID_ELSEWHERE, prepare=False, **values)
        }

    async def erase_document(
        self, erasure: Erasure, found: Sequence[Found] = (), *, is_last: bool = True, dry_run: bool = False
    ) -> int:
        needles = erasure.needles
        workspace_id, [document_id] = needles.workspace_id, needles.ids
        saying = {each.run_id for each in found if each.run_id}
        saying_in = {each.thread_id for each in found if each.thread_id}
        filtering = match_filters(needles.sources)
        prose = match_prose(needles)
        naming: dict[str, Any] = {"document_id": document_id, "erased": ERASED, "filtering": filtering, "prose": prose}
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            read = await session.fetch(_FIND_RUNS, saying=sorted(saying), **naming)
            thread_ids = {*saying_in, *(row["thread_id"] for row in read)}
            branches = await session.fetch(_FIND_BRANCHES, thread_ids=sorted(thread_ids))
            thread_ids = {row["thread_id"] for row in branches}
            await session.execute(_LOCK_THREADS, thread_ids=sorted(thread_ids))
            # A run may have ended since they were found, with what it has read then.
            found_busy = [row for row in read if row["is_busy"]]
            still_busy = await session.fetch(_LIST_BUSY, thread_ids=sorted(thread_ids))
            busy = {row["thread_id"] for row in (*found_busy, *still_busy)}
            known = erasure.run_ids - saying
            free = [row for row in read if row["thread_id"] not in busy and row["run_id"] not in known]
            told = [row for row in free if row["is_told"]]
            blanking: dict[str, Any] = naming | {
                "run_ids": [row["run_id"] for row in free],
                "told": [row["run_id"] for row in told],
                "asked": [row["run_id"] for row in told if row["is_asked"]],
                "told_in": sorted({row["thread_id"] for row in told} | (saying_in - busy)),
                "texts": [*needles.texts, *(said for each in found if not each.run_id for said in each.repeated)],
                "notice": write_notice(),
                "most_asked": MOST_ASKED,
            }
            erasure.run_ids |= set(blanking["run_ids"])
            rows = Counter[str]()
            for table, statement in _BLANK.items():
                rows[table] += (await session.execute(statement, **blanking)).rowcount
            # The states of a conversation repeat its turns, so they go together: it goes on without them.
            gone = await run(session, DELETE_STATES, **_name_threads(workspace_id, sorted(thread_ids - busy)))
            rows["state_packs"] += gone.rows
            if is_last and not busy:
                # Not before: what ends meanwhile may have been given what these say.
                for table, statement in _DELETE_TRACES.items():
                    deleted = await session.execute(
                        statement, document_ids=[document_id], sources=list(needles.sources), **naming
                    )
                    # Deleting the document has added one of these.
                    if table != "revision_groups":
                        rows[table] += deleted.rowcount
            await session.execute(_NOTE, kind="document", target=document_id, needles=None, run_ids=blanking["run_ids"])
            if dry_run:
                raise Rollback
        rows["audit_log"] += await erase_from_audit(self._pool, workspace_id, needles.sources, dry_run=dry_run)
        erasure.rows += rows
        return len(busy)

    async def erase_thread(self, workspace_id: str, thread_id: str, *, dry_run: bool = False) -> Erasure:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            rows = await session.fetch(_FIND_BRANCHES, thread_ids=[thread_id])
            thread_ids = [row["thread_id"] for row in rows]
            if not thread_ids:
                raise UnknownThread
            await session.execute(_LOCK_THREADS, thread_ids=thread_ids)
            if await session.fetch(_LIST_BUSY, thread_ids=thread_ids):
                raise ThreadBusy
            runs = await session.fetch(_LIST_THREAD_RUNS, thread_ids=thread_ids)
            sentences = _list_sentences(row["said"] for row in runs)[:SENTENCES]
            elsewhere = await self._find_elsewhere(sentences, workspace_id, thread_ids)
            unique = tuple(sentence for sentence in sentences if sentence not in elsewhere)
            erasure = Erasure(Needles(workspace_id, tuple(thread_ids), sentences=unique))
            erasure.run_ids = frozenset(row["run_id"] for row in runs)
            these = _name_threads(workspace_id, thread_ids)
            for table, statement in _DELETE_THREADS.items():
                erasure.rows[table] = (await run(session, statement, **these)).rows
            noted: dict[str, Any] = {"run_ids": list(erasure.run_ids), "needles": _pack(erasure.needles)}
            await session.execute(_NOTE, kind="thread", target=thread_id, **noted)
            if dry_run:
                raise Rollback
        return erasure

    async def begin(self, needles: Needles) -> None:
        await self._note_anew("left", "document", needles)

    async def _note_anew(self, former: str, kind: str, needles: Needles) -> None:
        noted: dict[str, Any] = {"target": needles.ids[0], "run_ids": [], "needles": _pack(needles)}
        async with open_session(self._pool, needles.workspace_id, transaction=True) as session:
            await session.execute(_UNNOTE, kind=former, target=needles.ids[0])
            await session.execute(_NOTE, kind=kind, **noted)

    async def list_begun(self, workspace_id: str) -> frozenset[str]:
        rows = await self._pool.fetch(workspace_id, _LIST_BEGUN)
        return frozenset(row["run_id"] for row in rows)

    async def settle(self, kind: Erasable, target: str, needles: Needles, *, is_left: bool) -> None:
        if is_left:
            await self._note_anew(kind, "left", needles)
        else:
            await self._pool.execute(needles.workspace_id, _DROP_NEEDLES, kind=kind, target=target)

    async def end(self, workspace_id: str, kind: Erasable, target: str) -> None:
        await self._pool.execute(workspace_id, _END, kind=kind, target=target)

    async def list_pending(self) -> Sequence[tuple[Erasable, Erasure]]:
        rows = await self._pool.fetch(ALL_WORKSPACES, _LIST_PENDING)
        return [
            (
                row["kind"],
                Erasure(_unpack(row["workspace_id"], row["target"], row["needles"]), run_ids=frozenset(row["run_ids"])),
            )
            for row in rows
        ]

    async def search(self, needles: Needles) -> tuple[int, Sequence[Found]]:
        return await search_tables(self._pool, needles)


def _name_threads(workspace_id: str, thread_ids: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of `THESE`."""
    return {"workspaces": [workspace_id] * len(thread_ids), "thread_ids": thread_ids}


def _pack(needles: Needles) -> bytes:
    kept = {name: getattr(needles, name) for name in (*_KEPT, "text")}
    return zstandard.compress(orjson.dumps(kept))


def _unpack(workspace_id: str, target: str, packed: bytes | None) -> Needles:
    """Read needles, which say which branches of a thread went with it. The target comes first."""
    kept: dict[str, Any] = orjson.loads(zstandard.decompress(packed)) if packed else {}
    ids, sources, sentences, tokens = (tuple(kept.get(name, ())) for name in _KEPT)
    targets = tuple(dict.fromkeys([target, *ids]))
    return Needles(workspace_id, targets, sources, sentences, tokens, kept.get("text", ""))


def _read_texts(said: Iterable[str], texts: Sequence[str]) -> tuple[str, Mapping[str, list[str]]]:
    """Return the words of what a document says, and a sample of its sentences, or of its numbers and codes."""
    starters = [starter.question for text in texts for starter in make_starters(text[:LONGEST_READ])]
    # Headings are proposed and asked as they stand.
    headings = _list_sentences(heading for text in texts for heading in _HEADING.findall(text))
    sentences = [*_sample(headings), *_sample(_list_sentences(texts))]
    tokens = [] if sentences else _sample(token[0] for text in texts for token in _TOKEN.finditer(text))
    # What is struck may be read along or not.
    unstruck = map(blank_struck, texts)
    return simplify_blocks([*said, *starters, *unstruck]), {"sentences": sentences, "tokens": tokens}


def _list_sentences(texts: Iterable[str]) -> list[str]:
    """Return what is long enough to belong to one text: sentences, or the parts of them that JSON does not escape; as
    they stand, and as they are shown and asked."""
    forms = (form for text in texts for form in (text, _SIGNS.sub("", plain_text(text))))
    sentences = (form[start:end] for form in forms for start, end in split_sentences(form))
    parts = (part.strip() for sentence in sentences for part in _ESCAPED.split(sentence))
    return [part for part in dict.fromkeys(parts) if len(part) >= _SHORTEST]


def _sample(found: Iterable[str]) -> list[str]:
    """Return some of what was found, from all of it."""
    different = list(dict.fromkeys(found))
    return different[:: max(1, -(-len(different) // SENTENCES))]
