"""Row-level security: PostgreSQL shows a connection the rows of its workspace alone, even where a query forgets to ask.

The owner of the tables logs in. Connections that serve a workspace take on `SERVING_ROLE`, which owns nothing, and name
their workspace in `askgraph.workspace` (`pool.borrow`). The owner itself is not restricted: this serves
migrations, LangChain's `PGVectorStore`, and what `pool.ALL_WORKSPACES` is used for.

`secure` may run at any time and any number of times.
"""

import logging
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import scalar_row, tuple_row
from psycopg.sql import SQL, Composed, Identifier

logger = logging.getLogger("askgraph.postgres")

SERVING_ROLE = "askgraph_service"
"""The role of connections that serve a workspace. All databases of a server share it."""

OF_WORKSPACE = (
    "accepted_runs",
    "assistants",
    "chunk_places",
    "chunk_terms",
    "chunk_tokens",
    "chunks",
    "chunks_to_embed",
    "document_marks",
    "document_revisions",
    "documents",
    "erasures",
    "feedback",
    "ingestions",
    "original_objects",
    "originals",
    "pruned_runs",
    "revision_groups",
    "run_documents",
    "run_turns",
    "runs",
    "set_questions",
    "set_runs",
    "state_packs",
    "synced_files",
    "tapes",
    "term_frequencies",
    "threads",
    "vocabulary",
    "workspaces",
)
"""Tables with a column `workspace_id`."""

SHARED = (
    "embedding_model",
    "housekeeping",
    "schema_version",
)
"""Tables of all workspaces. They hold versions, ids and times, and nothing that a document or a person said."""

OWNERS = ("api_keys", "audit_log", "browser_sessions")
"""Tables that connections which serve a workspace cannot read at all."""

SEQUENCES = ("arrivals", "chunks_to_embed_number_seq")

VIEWS = (
    "documents_of_workspace",
    "sketches_of_workspace",
    "terms_of_workspace",
    "threads_of_workspace",
    "words_of_workspace",
)
"""Views with the workspace in their condition. Searches whose operators PostgreSQL does
not trust (`&&`, `@@`, `%`, `ILIKE`) read these: behind a policy no index would serve them."""

# The sub-select is evaluated once a statement, not once a row. IS TRUE keeps the planner from choosing an index for the
# sake of this condition: our statements name the workspace themselves, in the form that suits their index.
_OF_WORKSPACE: LiteralString = "(workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE"

# A document or an assistant of groups is for those in one of them. Whatever shows a text joins `documents`.
_OF_GROUPS: LiteralString = """
    groups = '{}'
    OR (SELECT coalesce(current_setting('askgraph.groups', true), '') = '')
    OR groups && (SELECT nullif(current_setting('askgraph.groups', true), '')::text[])
"""

READABLE: LiteralString = "(%(groups)s::text[] IS NULL OR groups = '{}' OR groups && %(groups)s::text[])"
"""The same of a row with groups, for statements: not every server lets us have the role. NULL: all groups."""

_LOCK = 0x61736B69
"""Advisory lock of the only process that secures tables."""

_FIND_OPEN: LiteralString = """
    SELECT name, is_open, is_ungranted FROM (
        SELECT c.relname AS name,
            c.relname = ANY (%(protected)s)
                AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) AS is_open,
            EXISTS (SELECT FROM pg_roles WHERE rolname = %(role)s) AND NOT EXISTS (
                SELECT FROM aclexplode(c.relacl) AS granted JOIN pg_roles ON pg_roles.oid = granted.grantee
                WHERE rolname = %(role)s
            ) AS is_ungranted
        FROM pg_class AS c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY (%(named)s)
    ) AS found
    WHERE is_open OR is_ungranted
    ORDER BY name
"""

# 'MEMBER' is what a server before PostgreSQL 16 calls it.
_MAY_SERVE: LiteralString = """
    SELECT pg_has_role(
        session_user, oid, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END
    )
    FROM pg_roles WHERE rolname = %s
"""

HOW_TO_CREATE = f"CREATE ROLE {SERVING_ROLE} NOLOGIN; GRANT {SERVING_ROLE} TO <the role of DATABASE_URL>;"
"""Statements for an administrator of a server on which our role may not create roles."""


async def secure(connection: AsyncConnection[Any]) -> None:
    """Create the role where it is missing, and the policies and grants of tables that have none. `connection` is the
    tables' owner's, in autocommit.

    Where the owner may create no roles, the policies are there and nobody is subject to them: see `find_role`.
    """
    if await find_role(connection) is not None and not await _find_open(connection):
        return
    await connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        await _create_role(connection)
        for name, is_open, is_ungranted in await _find_open(connection):
            async with connection.transaction():
                if is_open:
                    await protect(connection, name)
                if is_ungranted:
                    await connection.execute(_describe_grant(name))
    except psycopg.errors.InsufficientPrivilege as error:
        logger.warning("Row-level security could not be set up: %s", error.diag.message_primary)
    finally:
        await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


async def find_role(connection: AsyncConnection[Any]) -> str | None:
    """Return the role for connections that serve a workspace, or None if there is none that we may take on."""
    cursor = connection.cursor(row_factory=scalar_row)
    return SERVING_ROLE if await (await cursor.execute(_MAY_SERVE, [SERVING_ROLE])).fetchone() else None


async def protect(connection: AsyncConnection[Any], name: str) -> None:
    """Give a table of `OF_WORKSPACE` its policy."""
    is_of_groups = name in ("assistants", "documents", "term_frequencies")
    condition: LiteralString = f"{_OF_WORKSPACE} AND ({_OF_GROUPS})" if is_of_groups else _OF_WORKSPACE
    table = Identifier(name)
    await connection.execute(SQL("CREATE POLICY of_workspace ON {} USING ({})").format(table, SQL(condition)))
    await connection.execute(SQL("ALTER TABLE {} ENABLE ROW LEVEL SECURITY").format(table))


async def _find_open(connection: AsyncConnection[Any]) -> list[tuple[str, bool, bool]]:
    """Return the tables without a policy that they should have, or without the grant."""
    named = [*OF_WORKSPACE, *SHARED, *SEQUENCES, *VIEWS]
    cursor = connection.cursor(row_factory=tuple_row)
    await cursor.execute(_FIND_OPEN, {"named": named, "protected": list(OF_WORKSPACE), "role": SERVING_ROLE})
    return await cursor.fetchall()


async def _create_role(connection: AsyncConnection[Any]) -> None:
    role = Identifier(SERVING_ROLE)
    try:
        if await find_role(connection) is None:
            await connection.execute(SQL("CREATE ROLE {} NOLOGIN").format(role))
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        pass  # by another database of the server, or without the right to take it on
    except psycopg.errors.InsufficientPrivilege:
        return
    if await find_role(connection) is None:
        try:
            await connection.execute(SQL("GRANT {} TO CURRENT_USER").format(role))
        except psycopg.errors.InsufficientPrivilege:
            return


def _describe_grant(name: str) -> Composed:
    if name in SEQUENCES:
        grant = SQL("GRANT USAGE, SELECT ON SEQUENCE {} TO {}")
    elif name in VIEWS:
        grant = SQL("GRANT SELECT ON {} TO {}")
    else:
        grant = SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}")
    return grant.format(Identifier(name), Identifier(SERVING_ROLE))
