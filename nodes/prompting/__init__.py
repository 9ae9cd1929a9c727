"""Asking language models: messages, judgements that may fail, and the order in which models are asked."""
