"""A service that a program starts for itself."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from askgraph.errors import AskgraphError, Unavailable

START_SECONDS = 120.0
"""Time that the service gets to start. In a new home it makes a database first."""
STOP_SECONDS = 20.0
"""Time that the service gets to end its runs and its servers. It takes at most 14 seconds for that."""


class EmbeddedService:
    """The service as a child process. Where a server of the same settings runs in the home folder, the child only finds
    it, and ends."""

    def __init__(self, home: str | os.PathLike[str] | None = None) -> None:
        """`home` is the data folder; unset: `ASKGRAPH_HOME`, or `~/.askgraph`."""
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> tuple[str, str]:
        """Start the service, and return its address and a key, once it answers. Raises `Unavailable`."""
        # It serves here, whichever server commands of this environment ask.
        environment = {name: value for name, value in os.environ.items() if name != "ASKGRAPH_SERVER"}
        if self._home is not None:
            environment["ASKGRAPH_HOME"] = str(Path(self._home).expanduser().resolve())
        # A session of its own: Ctrl-C is for the program, which stops the service by closing its standard input, as
        # the end of the program does, too.
        process = self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("__main__.py")), "serve", "--embedded"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert process.stdout is not None
        too_late = threading.Timer(START_SECONDS, process.kill)
        too_late.daemon = True  # Ctrl-C may come while it starts
        try:
            too_late.start()
            said = process.stdout.readline()
        except BaseException:
            # Ctrl-C: the service ends by itself, and the program need not wait for it.
            assert process.stdin is not None
            process.stdin.close()
            raise
        finally:
            too_late.cancel()
        try:
            reply = json.loads(said)
        except ValueError:
            self.stop()
            raise Unavailable(
                f"The service could not be started: {sys.executable} -m askgraph serve ended with "
                f"{process.returncode}. What it said is on standard error."
            ) from None
        if "error" in reply:
            self.stop()
            raise AskgraphError(reply["error"]["message"], code=reply["error"]["code"])
        return str(reply["url"]), str(reply["key"])

    def stop(self) -> None:
        """End the service, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
