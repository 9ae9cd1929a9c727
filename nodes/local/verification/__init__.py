"""Checks claims against the sources that they cite."""
