"""Runs that have ended show nothing any more: `run_documents` says what they read."""


def list_statements() -> list[str]:
    return ["UPDATE accepted_runs SET showing = '{}' WHERE ended IS NOT NULL AND showing <> '{}'"]
