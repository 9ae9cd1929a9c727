"""Who brought a document: what the caller of a key may have stored is limited."""


def list_statements() -> list[str]:
    return [
        # NULL: a command, or from before this.
        *(f"ALTER TABLE {table} ADD brought_by text" for table in ("documents", "document_revisions", "ingestions")),
        *(
            f"CREATE INDEX {table}_by_bringer ON {table} (brought_by) WHERE brought_by IS NOT NULL"
            for table in ("documents", "document_revisions")
        ),
        "ALTER TABLE api_keys ADD max_documents int, ADD max_stored_mb int",
    ]
