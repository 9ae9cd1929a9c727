"""A file belongs to one synced folder, however many it is in."""

ADD = """
DELETE FROM synced_files AS file USING synced_files AS other
WHERE other.workspace_id = file.workspace_id AND other.source = file.source AND other.folder > file.folder;
ALTER TABLE synced_files DROP CONSTRAINT synced_files_pkey, ADD PRIMARY KEY (workspace_id, source);
CREATE INDEX synced_files_by_folder ON synced_files (workspace_id, folder);
"""


def list_statements() -> list[str]:
    return [ADD]
