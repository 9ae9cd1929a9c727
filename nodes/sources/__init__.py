"""Finding sources: search, fusion, expansion of queries, and widening to what stands around a chunk."""
