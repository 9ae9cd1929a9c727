"""Choosing another embedding model fills no second table any more (vectors/choosing.py)."""


def list_statements() -> list[str]:
    return ["DROP TABLE IF EXISTS chunks_next; ALTER TABLE embedding_model DROP COLUMN next"]
