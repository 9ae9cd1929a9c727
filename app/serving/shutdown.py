"""Ends a process that was told to stop in time, whatever its threads and connections are doing."""

import signal

STOP_SECONDS = 14
"""Seconds from the signal to the end of the process. Draining takes up to nine of them (`app.runs.manager`), and the
rest is for closing connections."""


def end_in_time() -> None:
    """Have the kernel end this process `STOP_SECONDS` from now, should it not have ended before.

    A thread that never returns keeps Python from exiting, and a server that does not answer keeps a connection from
    closing. What this process still holds then goes to other processes, as after a crash.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(STOP_SECONDS)
