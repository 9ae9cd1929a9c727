"""The log of runs: one row per execution of the graph or answer from the cache, and its tape."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, LiteralString

from app.adapters.postgres.library.filters import write_test
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, write_json
from domain.history.run_lists import RunFilter, RunSummary
from domain.library.where import Where
from domain.runs import CostKey, RunRecord, Spending
from domain.scope import Scope

_FIELDS = [field.name for field in fields(RunRecord)]

RUN_COLUMNS: LiteralString = ", ".join(_FIELDS)
"""The columns of `runs`, which are the fields of `RunRecord`."""

INSERT_RUN: LiteralString = f"INSERT INTO runs ({RUN_COLUMNS}) SELECT {', '.join(f'%({name})s' for name in _FIELDS)}"
"""Inserts the record whose columns `list_columns` returns. `queue.runs` completes it with FROM."""

_GET_RUN: LiteralString = f"""
    SELECT {RUN_COLUMNS} FROM runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_FIND_ORIGIN: LiteralString = f"""
    SELECT {RUN_COLUMNS} FROM runs
    WHERE workspace_id = %(workspace_id)s AND mode = %(mode)s AND answer = %(answer)s AND NOT cached
        AND forked_from IS NULL AND error IS NULL AND started_at < %(before)s
    ORDER BY started_at DESC LIMIT 1
"""

_GET_TAPE: LiteralString = """
    SELECT tape FROM tapes WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

# What comes from a table of PGVectorStore has no hash.
_OUTDATED: LiteralString = """
    (
        SELECT count(DISTINCT cited ->> 'document_id')
        FROM jsonb_array_elements(citations) AS cited LEFT JOIN documents
            ON documents.workspace_id = runs.workspace_id AND document_id::text = cited ->> 'document_id'
        WHERE cited ? 'content_hash' AND content_hash IS DISTINCT FROM cited ->> 'content_hash'
    )
"""

_SUMMARY: LiteralString = f"""
    run_id, thread_id, started_at, question, mode, route, outcome, confidence, top_score, retries, candidates, sources,
    jsonb_array_length(citations) AS citations, verification, cached, answered_by, cost,
    (timings ->> 'total')::float8 AS ms, jsonb_array_length(warnings) AS warnings,
    jsonb_array_length(degraded) AS degraded, {_OUTDATED} AS outdated, error, forked_from IS NOT NULL AS replay,
    jsonb_path_query_array(outcome_reasons, '$[*].code') AS reasons,
    feedback.rating, feedback.reason AS complaint, coalesce(feedback.comment, '') AS comment,
    coalesce((
        SELECT request ->> 'caller' FROM accepted_runs AS accepted
        WHERE accepted.workspace_id = runs.workspace_id AND accepted.run_id = runs.run_id
    ), '') AS asked_by,
    ARRAY(SELECT DISTINCT used ->> 'model' FROM jsonb_array_elements(usage) AS used) AS models,
    ARRAY(SELECT DISTINCT cited ->> 'title' FROM jsonb_array_elements(citations) AS cited) AS documents
"""

_LIST_RUNS: LiteralString = f"""
    SELECT * FROM (
        SELECT {_SUMMARY} FROM runs LEFT JOIN feedback USING (workspace_id, run_id)
        WHERE workspace_id = %(workspace_id)s AND started_at >= %(since)s
            AND (%(until)s::timestamptz IS NULL OR started_at < %(until)s::timestamptz)
            AND NOT EXISTS (
                SELECT FROM unnest(%(words)s::text[]) AS word
                WHERE strpos(lower(question || E'\n' || answer), lower(word)) = 0
            )
            AND (%(groups)s::text[] IS NULL OR may_read_run(workspace_id, run_id, %(groups)s))
            AND (%(after_at)s::timestamptz IS NULL OR (started_at, run_id) < (%(after_at)s::timestamptz, %(after_id)s))
    ) AS run
    WHERE %(passes)s::jsonpath IS NULL OR to_jsonb(run) @@ %(passes)s::jsonpath
    ORDER BY started_at DESC, run_id DESC
    LIMIT %(limit)s
"""


def _sum_costs(by: LiteralString) -> LiteralString:
    # The last row is the total of all runs. A run without a model call has no usage, and so neither node nor model.
    return f"""
        SELECT
            {by} AS name,
            count(DISTINCT (workspace_id, run_id)) AS runs,
            count(DISTINCT (workspace_id, run_id)) FILTER (WHERE cached) AS cached,
            coalesce(sum(u.calls), 0)::bigint AS calls,
            coalesce(sum(u.input_tokens), 0)::bigint AS input_tokens,
            coalesce(sum(u.output_tokens), 0)::bigint AS output_tokens,
            coalesce(sum(u.cost), 0) AS cost,
            coalesce(sum(u.calls) FILTER (WHERE u.cost IS NULL), 0)::bigint AS unpriced,
            coalesce(sum(u.calls) FILTER (WHERE u.estimated), 0)::bigint AS estimated,
            coalesce(sum(u.cached_tokens), 0)::bigint AS cached_tokens
        FROM (
            SELECT workspace_id, run_id, started_at, mode, cached, usage FROM runs
            UNION ALL SELECT workspace_id, run_id, started_at, mode, cached, usage FROM pruned_runs
        ) AS r
            LEFT JOIN accepted_runs AS accepted USING (workspace_id, run_id)
            LEFT JOIN LATERAL jsonb_to_recordset(r.usage)
                AS u (
                    node text, model text, calls bigint, input_tokens bigint, output_tokens bigint, cost float8,
                    estimated boolean, cached_tokens bigint
                )
                ON true
        WHERE r.started_at >= %(since)s AND (%(everywhere)s OR workspace_id = %(workspace_id)s)
        GROUP BY GROUPING SETS (({by}), ())
        ORDER BY grouping({by}), cost DESC, calls DESC, name
    """


_SUM_COSTS: dict[CostKey, LiteralString] = {
    "mode": _sum_costs("r.mode"),
    "node": _sum_costs("u.node"),
    "model": _sum_costs("u.model"),
    "workspace": _sum_costs("r.workspace_id"),
    "caller": _sum_costs("coalesce(accepted.request ->> 'caller', 'not on record')"),
    "day": _sum_costs("to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"),
}


class PostgresRunLog:
    """Implements `RunLog` in PostgreSQL, with one column per field of the record."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, workspace_id: str, run_id: str) -> RunRecord | None:
        row = await self._pool.fetch_one(workspace_id, _GET_RUN, run_id=run_id)
        return RunRecord(**row) if row else None

    async def find_origin(self, cached: RunRecord) -> RunRecord | None:
        row = await self._pool.fetch_one(
            cached.workspace_id, _FIND_ORIGIN, mode=cached.mode, answer=cached.answer, before=cached.started_at
        )
        return RunRecord(**row) if row else None

    async def get_tape(self, workspace_id: str, run_id: str) -> bytes | None:
        row = await self._pool.fetch_one(workspace_id, _GET_TAPE, run_id=run_id)
        return row["tape"] if row else None

    async def list_runs(self, asker: Scope, wanted: RunFilter) -> list[RunSummary]:
        after_at, after_id = wanted.after or (None, None)
        rows = await self._pool.fetch(
            asker.workspace_id,
            _LIST_RUNS,
            prepare=False,
            since=wanted.since,
            until=wanted.until,
            words=list(wanted.words),
            groups=None if asker.groups is None else sorted(asker.groups),
            after_at=after_at,
            after_id=after_id,
            passes=_write_alternatives(wanted.alternatives),
            limit=wanted.limit,
        )
        return [RunSummary(**row) for row in rows]

    async def sum_costs(
        self, workspace_id: str | None, since: datetime, by: CostKey
    ) -> tuple[list[Spending], Spending]:
        rows = await self._pool.fetch(
            workspace_id or ALL_WORKSPACES, _SUM_COSTS[by], since=since, everywhere=workspace_id is None
        )
        *spent, together = [Spending(**row) for row in rows]
        return spent, together


def _write_alternatives(alternatives: Sequence[Where]) -> str | None:
    """Write a filter over runs as one JSON path; None where it passes all."""
    written = [" && ".join(map(write_test, where.conditions)) for where in alternatives]
    return " || ".join(f"({each})" for each in written) or None


def list_columns(record: RunRecord) -> dict[str, Any]:
    """Return the record's values by column."""
    values = {name: getattr(record, name) for name in _FIELDS}
    return {name: write_json(value) if isinstance(value, list | dict) else value for name, value in values.items()}
