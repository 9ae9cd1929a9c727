"""Runs one server until it ends or no process holds a lease on it any more; see the package's docstring.

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


def supervise(lease: str, lock: str, log: Log, stop: int, command: list[str]) -> None:
    """Run the server, and return when it has ended."""
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    # The kernel ties the parent-death signal to the thread that forks: this one lives as long as the process.
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(held,),
        env={**os.environ, "SUPERVISOR": str(os.getpid())},
    )
    os.close(held)
    threading.Thread(target=stop_after_last_client, args=(lease, server, stop, log), daemon=True).start()
    output = server.stdout
    assert output is not None
    # The pipe ends when the last of the server's processes has closed it.
    while block := os.read(output.fileno(), 65536):
        log.write(block)
    if status := server.wait():
        log.say(f"the server ended with status {status}")


def stop_after_last_client(lease: str, server: "subprocess.Popen[bytes]", stop: int, log: Log) -> None:
    """Wait for the exclusive lock on the lease, then stop the server. The lock is held until the process exits."""
    fcntl.flock(os.open(lease, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    server.send_signal(stop)
    try:
        server.wait(SHUTDOWN_SECONDS)
    except subprocess.TimeoutExpired:
        log.say(f"the server has not stopped within {SHUTDOWN_SECONDS} s; killing it")
        server.kill()


def main(lease: str, lock: str, log: str, stop: str, *command: str) -> None:
    """Detach from the client, so that the client has no child to wait for, and supervise."""
    if os.fork():
        os._exit(0)
    os.umask(0o077)
    supervise(lease, lock, Log(log), int(stop), list(command))


if __name__ == "__main__":
    main(*sys.argv[1:])
