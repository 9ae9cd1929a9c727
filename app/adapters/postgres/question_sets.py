"""Sets of questions in PostgreSQL: a row a question, and a row for each time that a set was asked."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import LiteralString

from psycopg.types.json import Jsonb

from app.adapters.postgres.pool import Pool, Session, open_session
from domain.errors import InputError
from domain.people.names import fold_name
from domain.ports.question_sets import MOST_QUESTIONS, MOST_RUNS, MOST_SETS, QuestionSet, SetQuestion, SetRun

_OF_SET: LiteralString = "workspace_id = %(workspace_id)s AND set_name = %(name)s"

_LIST_NAMES: LiteralString = "SELECT DISTINCT set_name FROM set_questions WHERE workspace_id = %(workspace_id)s"

_LIST_QUESTIONS: LiteralString = """
    SELECT set_name, id, question, answers, answerable FROM set_questions
    WHERE workspace_id = %(workspace_id)s AND (%(name)s::text IS NULL OR set_name = %(name)s)
    ORDER BY set_name, added_at, id
"""

_LIST_RUNS: LiteralString = """
    SELECT set_name, ran_at, result FROM set_runs
    WHERE workspace_id = %(workspace_id)s AND (%(name)s::text IS NULL OR set_name = %(name)s) ORDER BY ran_at DESC
"""

_PUT: LiteralString = f"""
    INSERT INTO set_questions (workspace_id, set_name, id, question, answers, answerable, document_ids)
    SELECT %(workspace_id)s, %(name)s, %(id)s, %(question)s, %(answers)s, %(answerable)s, ARRAY(
        SELECT DISTINCT document_id FROM run_documents
        WHERE workspace_id = %(workspace_id)s AND run_id = %(id)s AND shown
    )
    WHERE (SELECT count(*) FROM set_questions WHERE {_OF_SET} AND id <> %(id)s) < %(most)s
        AND (
            SELECT count(DISTINCT set_name) FROM set_questions
            WHERE workspace_id = %(workspace_id)s AND set_name <> %(name)s
        ) < %(most_sets)s
    ON CONFLICT (workspace_id, set_name, id) DO UPDATE
        SET question = excluded.question, answers = excluded.answers, answerable = excluded.answerable
"""

_DELETE: LiteralString = f"DELETE FROM set_questions WHERE {_OF_SET} AND (%(id)s::text IS NULL OR id = %(id)s)"

_RECORD: LiteralString = f"""
    INSERT INTO set_runs (workspace_id, set_name, ran_at, result)
    SELECT %(workspace_id)s, %(name)s, %(ran_at)s, %(result)s
    WHERE EXISTS (SELECT FROM set_questions WHERE {_OF_SET}) ON CONFLICT DO NOTHING
"""

_PRUNE: LiteralString = f"""
    DELETE FROM set_runs WHERE {_OF_SET}
        AND ran_at < (SELECT ran_at FROM set_runs WHERE {_OF_SET} ORDER BY ran_at DESC OFFSET %(most)s - 1 LIMIT 1)
"""


class PostgresQuestionSets:
    """Implements `QuestionSets` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list(self, workspace_id: str, name: str | None = None) -> Sequence[QuestionSet]:
        async with open_session(self._pool, workspace_id) as session:
            name = name and await _find_name(session, name)
            questions = await session.fetch(_LIST_QUESTIONS, name=name)
            runs = await session.fetch(_LIST_RUNS, name=name)
        sets: dict[str, tuple[list[SetQuestion], list[SetRun]]] = {}
        for row in questions:
            sets.setdefault(row.pop("set_name"), ([], []))[0].append(SetQuestion(**row))
        for row in runs:
            if (found := sets.get(row["set_name"])) is not None:
                found[1].append(SetRun(ran_at=row["ran_at"], **row["result"]))
        return [QuestionSet(name, *held) for name, held in sets.items()]

    async def put(self, workspace_id: str, name: str, question: SetQuestion) -> None:
        async with open_session(self._pool, workspace_id) as session:
            values = asdict(question) | {
                "name": await _find_name(session, name),
                "most": MOST_QUESTIONS,
                "most_sets": MOST_SETS,
            }
            if not (await session.execute(_PUT, **values)).rowcount:
                raise InputError(f"A set has at most {MOST_QUESTIONS} questions, a workspace {MOST_SETS} sets.")

    async def delete(self, workspace_id: str, name: str, question_id: str | None = None) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            named = await _find_name(session, name)
            return bool((await session.execute(_DELETE, name=named, id=question_id)).rowcount)

    async def record(self, workspace_id: str, name: str, run: SetRun) -> None:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            result = {field: value for field, value in asdict(run).items() if field != "ran_at"}
            await session.execute(_RECORD, name=name, ran_at=run.ran_at, result=Jsonb(result))
            await session.execute(_PRUNE, name=name, most=MOST_RUNS)


async def _find_name(session: Session, name: str) -> str:
    """Return the name of the set that is called so, in other letters or with blanks around it perhaps."""
    rows = await session.fetch(_LIST_NAMES)
    return next(
        (row["set_name"] for row in rows if fold_name(row["set_name"]) == fold_name(name.strip())), name.strip()
    )
