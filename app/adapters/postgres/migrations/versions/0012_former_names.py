"""The names that a document had before, which are forgotten with it."""


def list_statements() -> list[str]:
    return ["ALTER TABLE documents ADD former text[] NOT NULL DEFAULT '{}'"]
