"""Who may do what: keys, tokens, limits, refusals."""
