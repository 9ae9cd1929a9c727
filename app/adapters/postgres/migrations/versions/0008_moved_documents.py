"""A document keeps its id under another name, and is known again by its content after it was deleted."""

ADD = """
-- Of a deleted document.
ALTER TABLE document_marks ADD content_hash text;
CREATE INDEX document_marks_by_hash ON document_marks (workspace_id, content_hash) WHERE content_hash IS NOT NULL;
ALTER TABLE ingestions ADD moved_from text;
"""


def list_statements() -> list[str]:
    return [ADD]
