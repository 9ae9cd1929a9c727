"""What the service says itself, in each language."""
