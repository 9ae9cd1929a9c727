"""A run's record holds its outcome and the reasons for it.

Older runs get theirs from their route, their citations and the wording that their answers had, which was fixed.
"""

from alembic import op

revision = "0015"
down_revision = "0014"

_CAVEAT = "The documents may answer this only in part. "
_UNCITED = "The answer cites no source, so nothing shows that it comes from the documents."
_ADMISSION = " The sources do not mention (“[^”]*”(?: or “[^”]*”)*)\\.$"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE runs
            ADD COLUMN outcome text,
            ADD COLUMN outcome_reasons jsonb NOT NULL DEFAULT '[]'
        """)
    connection = op.get_bind().connection.driver_connection
    assert connection is not None
    texts = {"caveat": _CAVEAT, "uncited": f'["{_UNCITED}"]', "admission": _ADMISSION}
    # A run that failed or was stopped has no outcome.
    connection.execute(
        """
        UPDATE runs SET outcome = CASE
                WHEN route = 'conversational' THEN 'conversed'
                WHEN route = 'out_of_scope' THEN 'declined'
                WHEN citations <> '[]' THEN
                    CASE WHEN reasons = '[]' THEN 'answered' ELSE 'answered_with_caveat' END
                WHEN warnings @> %(uncited)s::jsonb THEN 'answered_with_caveat'
                ELSE 'abstained'
            END,
            outcome_reasons = CASE
                WHEN route <> 'needs_retrieval' THEN '[]'
                WHEN citations <> '[]' THEN reasons
                WHEN warnings @> %(uncited)s::jsonb THEN reasons || '[{"code": "uncited"}]'
                WHEN timings ? 'abstain' THEN found
                WHEN verification = 'reconciled' THEN '[{"code": "nothing_supported", "claims": 0}]'
                WHEN answered_by IN ('', 'local') THEN '[{"code": "nothing_quotable"}]'
                ELSE jsonb_build_array(jsonb_build_object('code', 'model_abstained', 'model', answered_by))
            END
        FROM (
            SELECT old.workspace_id AS workspace, old.run_id AS id,
                CASE WHEN starts_with(answer, %(caveat)s) THEN
                    jsonb_build_array(jsonb_build_object('code', 'low_confidence', 'confidence', confidence))
                    ELSE '[]' END
                || CASE WHEN answer ~ %(admission)s THEN
                    jsonb_build_array(jsonb_build_object('code', 'missing_words', 'words', (
                        SELECT jsonb_agg(word[1])
                        FROM regexp_matches(substring(answer FROM %(admission)s), '“([^”]*)”', 'g') AS word
                    )))
                    ELSE '[]' END AS reasons,
                jsonb_build_array(jsonb_build_object(
                    'code', 'nothing_found', 'searched', coalesce(queries ->> 0, question), 'nearest', '[]'::jsonb,
                    'scope_is_empty', position('There was nothing to search in' IN answer) > 0
                ))
                || CASE WHEN retries > 0 THEN
                    jsonb_build_array(jsonb_build_object('code', 'retries_spent', 'retries', retries))
                    ELSE '[]' END AS found
            FROM runs AS old
        ) AS read
        WHERE workspace_id = workspace AND run_id = id AND error IS NULL AND route <> ''
        """,
        texts,
    )
    # The last events of runs say what the runs' records do.
    connection.execute(
        """
        UPDATE accepted_runs SET ended = ended || jsonb_build_object(
                'outcome', runs.outcome,
                'abstained', coalesce(runs.outcome = 'abstained', false),
                'outcome_reasons', runs.outcome_reasons,
                'framing', jsonb_build_object(
                    'opening', CASE WHEN starts_with(runs.answer, %(caveat)s) THEN length(%(caveat)s) ELSE 0 END,
                    'closing', coalesce(length(substring(runs.answer FROM '(' || %(admission)s || ')')), 0)
                )
            )
        FROM runs
        WHERE runs.workspace_id = accepted_runs.workspace_id AND runs.run_id = accepted_runs.run_id
            AND ended ->> 'type' = 'done'
        """,
        texts,
    )
