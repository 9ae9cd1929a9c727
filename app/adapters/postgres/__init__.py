"""PostgreSQL: one package per store, each SQL statement above the class or function that runs it.

- `pool`: connections, sessions of one workspace, translated errors; `patterns`: words of people in `LIKE`
- `library`: searching (dense, lexical, passages, vocabulary)
- `documents`: storing documents and chunks
- `vectors`: the embedding model of the index, HNSW graphs, re-embedding
- `conversations`: threads, and the log of runs with tapes and costs
- `queue`: accepted runs, ingestions, their leases, the worker
- `checkpoints`: LangGraph's saved states
- `retention`: deleting what is not kept
- `migrations`: the schema

Statements are upper-case constants of type `LiteralString`. `Session` gives each of them `%(workspace_id)s`.
"""
