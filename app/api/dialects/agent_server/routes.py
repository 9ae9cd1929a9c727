"""The protocol's endpoints."""

from app.api.dialects.agent_server import assistants, events, runs, threads

AGENT_SERVER = (assistants.router, threads.router, threads.erasing, runs.router, events.router)
