"""Ranking what a search found: by late interaction, a reranker or a model, and by the titles that it mentions."""
