"""What people give a document stays with it, apart from what its file says of itself."""

# NULL: from before this. Then it is what the file does not say itself.
ADD = """
ALTER TABLE documents ADD given jsonb;
-- What it had when it was deleted.
ALTER TABLE document_marks ADD given jsonb;
-- `sidecar`: what stands beside the file. NULL as metadata: those of the document stay.
ALTER TABLE ingestions ADD sidecar jsonb NOT NULL DEFAULT '{}', ALTER metadata DROP NOT NULL,
    ALTER metadata DROP DEFAULT;
UPDATE ingestions SET metadata = NULL WHERE metadata = '{}';
"""


def list_statements() -> list[str]:
    return [ADD]
