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

-- A set is gone with its last question, whatever deleted that.
CREATE FUNCTION delete_set_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM set_runs USING gone
    WHERE set_runs.workspace_id = gone.workspace_id AND set_runs.set_name = gone.set_name AND NOT EXISTS (
        SELECT FROM set_questions AS kept WHERE kept.workspace_id = gone.workspace_id AND kept.set_name = gone.set_name
    );
    RETURN NULL;
END $$;
CREATE TRIGGER delete_runs_of_sets AFTER DELETE ON set_questions
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION delete_set_runs();
