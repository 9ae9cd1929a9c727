"""The words of each workspace as they are written, by which a misspelt question finds what it means.

Words of chunks loaded before this are not in it: nothing is corrected to them until their document is added again.
"""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    # Compared byte by byte, so that words with a common beginning are neighbours whatever the server's language.
    op.execute("""
        CREATE TABLE vocabulary (
            workspace_id text NOT NULL,
            word text COLLATE "C" NOT NULL,
            -- The word's stem: term_frequencies says how many chunks hold it.
            term integer NOT NULL,
            PRIMARY KEY (workspace_id, word)
        )""")
    op.execute("CREATE INDEX vocabulary_by_term ON vocabulary (workspace_id, term)")
    op.execute("""
        CREATE INDEX vocabulary_by_trigram ON vocabulary
        USING gin (workspace_id, word gin_trgm_ops) WITH (gin_pending_list_limit = 256)""")
