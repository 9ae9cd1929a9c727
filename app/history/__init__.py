"""Conversations and runs that have ended: list, read, continue, forget."""
