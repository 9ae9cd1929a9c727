"""A run's life: accept a question, execute it, follow it, record it, and answer repeats from the cache."""
