"""The service around the answer graph."""

import os

# Checkpoints are read back as plain JSON types only; LangGraph reads this when it is first imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
# onnxruntime keeps, and may send, usage events unless it finds this when it is first imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
