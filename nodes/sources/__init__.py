"""Finding sources: search, fusion, and widening to what stands around a chunk."""
