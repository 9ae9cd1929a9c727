"""Documents, their chunks, and the two indexes over them."""

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    # Only `vector` is used so far. The others ship with PostgreSQL and are created here because this is the moment
    # when somebody with the right to do so is at hand.
    for extension in ("vector", "pg_trgm", "unaccent", "btree_gin"):
        op.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")

    op.execute("""
        CREATE TABLE workspaces (
            workspace_id text PRIMARY KEY,
            -- Advances with every change of a document; cached answers carry it in their key.
            generation bigint NOT NULL DEFAULT 0,
            chunks bigint NOT NULL DEFAULT 0
        )""")

    op.execute("""
        CREATE TABLE documents (
            document_id uuid PRIMARY KEY,
            workspace_id text NOT NULL REFERENCES workspaces,
            source text NOT NULL,
            title text NOT NULL,
            media_type text NOT NULL,
            content_hash text NOT NULL,
            pages integer,
            characters integer NOT NULL,
            chunks integer NOT NULL DEFAULT 0,
            text text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now(),
            UNIQUE (workspace_id, source)
        )""")
    op.execute("CREATE INDEX documents_by_hash ON documents (workspace_id, content_hash)")
    op.execute("CREATE INDEX documents_by_update ON documents (workspace_id, updated_at DESC)")

    # Readable by langchain-postgres' PGVectorStore, hence the names id, content, embedding and metadata. What an
    # edit elsewhere in the document moves stands in chunk_places: an update here would enter the row into the HNSW
    # index anew.
    op.execute("""
        CREATE TABLE chunks (
            id uuid PRIMARY KEY,
            workspace_id text NOT NULL,
            document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
            content_hash text NOT NULL,
            heading_path text[] NOT NULL,
            content text NOT NULL,
            metadata jsonb NOT NULL,
            embedding vector(384) NOT NULL
        ) WITH (toast_tuple_target = 4096)""")
    # The exact search reads every embedding of a workspace: they stay in the row instead of in the TOAST table.
    op.execute("ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE PLAIN")
    op.execute("CREATE INDEX chunks_by_document ON chunks (workspace_id, document_id)")
    # Half precision halves the index at equal recall.
    op.execute("""
        CREATE INDEX chunks_by_embedding ON chunks
        USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)""")

    op.execute("""
        CREATE TABLE chunk_places (
            chunk_id uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
            workspace_id text NOT NULL,
            chunk_index integer NOT NULL,
            start_offset integer NOT NULL,
            end_offset integer NOT NULL,
            -- [start, end, page, x, y, width, height] for each line of the page.
            lines jsonb NOT NULL
        ) WITH (fillfactor = 80)""")

    # `terms` finds candidates, `impacts` scores them. Kept inline for the same reason as the embedding.
    op.execute("""
        CREATE TABLE chunk_terms (
            chunk_id uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
            workspace_id text NOT NULL,
            document_id uuid NOT NULL,
            terms integer[] NOT NULL,
            impacts sparsevec(1000000000) NOT NULL
        ) WITH (toast_tuple_target = 8160)""")
    op.execute("CREATE INDEX chunk_terms_by_document ON chunk_terms (workspace_id, document_id)")
    # A search reads the pending list from end to end, so it is kept short (kilobytes; the default is 4 MB).
    op.execute("""
        CREATE INDEX chunk_terms_by_term ON chunk_terms
        USING gin (terms) WITH (gin_pending_list_limit = 256)""")

    op.execute("""
        CREATE TABLE term_frequencies (
            workspace_id text NOT NULL,
            term integer NOT NULL,
            chunks integer NOT NULL,
            PRIMARY KEY (workspace_id, term)
        ) WITH (fillfactor = 70)""")

    op.execute("""
        CREATE TABLE embedding_model (
            one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
            name text NOT NULL,
            dimension integer NOT NULL
        )""")
