"""Estimates whether the sources hold the answer."""
