"""What an erasure has left is looked for when it is repeated; of what is forgotten, a digest of the id stays. Runs that
have ended show nothing any more: `run_documents` says what they read."""


def list_statements() -> list[str]:
    return [
        # What was said, compressed, of an erasure that has left something.
        "ALTER TABLE erasures ADD COLUMN needles bytea",
        "UPDATE accepted_runs SET showing = '{}' WHERE ended IS NOT NULL AND showing <> '{}'",
    ]
