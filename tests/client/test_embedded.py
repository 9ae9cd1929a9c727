"""A service that a program starts, and that does not answer."""

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from askgraph import embedded

# In the place of the service: a program that says nothing until its standard input is closed.
sys.executable = sys.argv[1]
print("waiting", flush=True)
embedded.EmbeddedService().start()
"""


def test_ctrl_c_while_the_service_starts_ends_the_program_and_the_service(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text(f"#!/bin/sh\ncat > {tmp_path}/heard\necho ended > {tmp_path}/ended\n")
    silent.chmod(0o700)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(silent)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting\n"
    while not (tmp_path / "heard").exists():
        assert program.poll() is None
    program.send_signal(signal.SIGINT)
    program.wait(30)
    program.stdout.close()
    while not (tmp_path / "ended").exists():
        pass
