"""What is set before libraries are loaded: nothing of this machine is told to anybody, and it is not kept busy in vain."""

import os
import subprocess
import sys
from pathlib import Path


def test_loading_the_model_leaves_no_trace_in_the_home(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", "from app.adapters.embeddings.onnx import OnnxEmbedder; OnnxEmbedder.load()"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=60,
    )
    assert list(tmp_path.rglob("*")) == []


def test_numpy_computes_in_one_thread_whatever_enters(tmp_path: Path) -> None:
    """uvicorn, LangGraph's Studio and tests import modules of `app`, and not the command line."""
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            "import app, os, sys; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])",
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert shown.stdout == "False 1\n"
