"""Routing and rewriting questions without a language model."""
