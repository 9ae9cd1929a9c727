"""Nothing of this machine is told to anybody, or kept outside `ASKGRAPH_HOME`."""

import os
import subprocess
import sys
from pathlib import Path


def test_loading_the_model_leaves_no_trace_in_the_home(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", "from app.adapters.onnx import OnnxEmbedder; OnnxEmbedder.load()"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=60,
    )
    assert list(tmp_path.rglob("*")) == []
