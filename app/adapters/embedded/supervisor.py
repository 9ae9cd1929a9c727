"""Runs one server for as long as any process holds a lease on it; see the package's docstring.

Started by path with `python -I -S`, so it imports the standard library only, and little of it::

    supervisor.py LEASE LOCK LOG SIGNAL COMMAND...

LEASE and LOCK are files to lock, LOG takes the server's output, SIGNAL is the number that stops the server.
"""

import fcntl
import os
import subprocess
import sys
import threading
import time

LOG_BYTES = 1_000_000
"""Largest log in bytes; a larger one is kept once, as LOG.1."""

SHUTDOWN_SECONDS = 60
"""Seconds after which a server that has not stopped is killed; both servers recover from that."""

BRIEF_SECONDS = 1.0
BRIEF_LIVES = 3
"""A server that ends within BRIEF_SECONDS of its start, this many times in a row, will not start the next time
either."""


class Log:
    """A log file of bounded size: all output is written through this class."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, block: bytes) -> None:
        """Append the block, or drop it: a full disk must not keep the server from being supervised."""
        try:
            with open(self.path, "ab") as file:  # noqa: PTH123 - pathlib would add a fifth to this process's memory
                file.write(block)
                full = file.tell() > LOG_BYTES
            if full:
                os.replace(self.path, self.path + ".1")  # noqa: PTH105
        except OSError:
            pass

    def say(self, text: str) -> None:
        """Append a line from the supervisor itself."""
        now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        self.write(f"{now} supervisor: {text}\n".encode())


class Supervisor:
    """Supervises one server and the lease that keeps it running."""

    def __init__(self, lease: str, lock: str, log: Log, stop: int, command: list[str]) -> None:
        self.lease = lease
        self.lock = lock
        self.log = log
        self.stop = stop
        self.command = command
        self.server: subprocess.Popen[bytes] | None = None
        self.leaving = False
        self.guard = threading.Lock()

    def run(self) -> None:
        """Return when no client is left, or if the server does not start."""
        threading.Thread(target=self.leave_after_last_client, daemon=True).start()
        brief = 0
        while brief < BRIEF_LIVES:
            started = time.monotonic()
            if not self.serve_once():
                return
            brief = brief + 1 if time.monotonic() - started < BRIEF_SECONDS else 0
        self.log.say("the server does not start; giving up")

    def serve_once(self) -> bool:
        """Run the server until it ends. Returns False if it was told to stop."""
        lock = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with self.guard:
            if self.leaving:
                return False
            # The kernel ties the parent-death signal to the thread that forks, so the server is started here.
            self.server = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                env={**os.environ, "SUPERVISOR": str(os.getpid())},
            )
        os.close(lock)
        output = self.server.stdout
        assert output is not None
        # The pipe ends when the last of the server's processes has closed it, so a restart meets none of them.
        while block := os.read(output.fileno(), 65536):
            self.log.write(block)
        output.close()
        status = self.server.wait()
        if not self.leaving:
            self.log.say(f"the server ended with status {status}")
        return not self.leaving

    def leave_after_last_client(self) -> None:
        """Wait for the exclusive lock on the lease, then stop the server. The lock is held until the process exits."""
        lease = os.open(self.lease, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lease, fcntl.LOCK_EX)
        with self.guard:
            self.leaving = True
            server = self.server
        if server is None:
            os._exit(0)
        server.send_signal(self.stop)
        try:
            server.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            self.log.say(f"the server has not stopped within {SHUTDOWN_SECONDS} s; killing it")
            server.kill()


def main(lease: str, lock: str, log: str, stop: str, *command: str) -> None:
    """Detach from the client, so that the client has no child to wait for, and supervise."""
    if os.fork():
        os._exit(0)
    os.umask(0o077)
    Supervisor(lease, lock, Log(log), int(stop), list(command)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
