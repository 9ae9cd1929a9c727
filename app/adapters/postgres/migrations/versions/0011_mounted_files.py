"""A synced folder may hold others that are mounted, and that are away at times."""


def list_statements() -> list[str]:
    return ["ALTER TABLE synced_files ADD mount text"]
