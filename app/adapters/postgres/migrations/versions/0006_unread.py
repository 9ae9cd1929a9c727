"""What of a file is not in its document's text (`domain.documents.Unread`)."""

from typing import LiteralString

UNREAD: LiteralString = """
ALTER TABLE documents ADD unread jsonb NOT NULL DEFAULT '[]';
CREATE OR REPLACE VIEW documents_of_workspace AS SELECT * FROM documents
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
"""


def list_statements() -> list[LiteralString]:
    return [UNREAD]
