import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import ALONE, environment


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose server runs."""
    home = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment(home) | ALONE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert any("Ctrl-C" in line for line in server.stdout)
        with pytest.MonkeyPatch.context() as patch:
            # The settings of commands in this process, which have to be those of the server.
            patch.setenv("ASKGRAPH_LOAD_SAMPLES", "false")
            yield home
        server.send_signal(signal.SIGINT)
