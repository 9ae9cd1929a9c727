-- Sets of questions that a workspace keeps. The columns are the fields of domain.ports.question_sets.SetQuestion.
CREATE TABLE set_questions (
    workspace_id text NOT NULL,
    set_name text NOT NULL,
    id text NOT NULL,
    question text NOT NULL,
    answers text[] NOT NULL,
    answerable boolean NOT NULL,
    -- What the run was answered from, for erasures after the run is gone. Of a table of LangChain's, ids are any text.
    document_ids text[] NOT NULL,
    added_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, set_name, id)
);

-- What came of asking them. `result` has the other fields of SetRun.
CREATE TABLE set_runs (
    workspace_id text NOT NULL,
    set_name text NOT NULL,
    ran_at timestamptz NOT NULL,
    result jsonb NOT NULL,
    PRIMARY KEY (workspace_id, set_name, ran_at)
);
