"""The service around the answer graph."""

import os

# Checkpoints are read back as plain JSON types only; LangGraph reads this when it is first imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
