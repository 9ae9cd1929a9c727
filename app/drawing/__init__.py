"""Draws the answer graph, as text or as an image, without a network."""
