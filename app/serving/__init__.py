"""Processes: the HTTP server, the worker, and the server that a command starts or finds."""
