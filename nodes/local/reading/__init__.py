"""Reads sources and questions for extraction and grading."""
