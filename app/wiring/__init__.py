"""Builds the parts of the service from the settings, one module a concern."""
