"""The service around the answer graph."""

import os

# Checkpoints are read back as plain JSON types only; LangGraph reads this when it is first imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
# onnxruntime keeps, and may send, usage events unless it finds this when it is first imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
# OpenBLAS reads it once, when numpy is first loaded. Products here are small: its threads take five times the CPU of
# doing them in one, and questions side by side use the cores anyway (docs/decisions/13-latency.md).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
