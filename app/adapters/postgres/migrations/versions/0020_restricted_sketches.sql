-- Of texts that all may read, no sketch is looked up, and to index one takes a third of the time to store it.
DROP INDEX documents_by_sketch;
CREATE INDEX documents_by_sketch ON documents USING gin (workspace_id, sketch) WHERE groups <> '{}';
