"""Ends a process that was told to stop in time, whatever its threads and connections are doing."""

import faulthandler

STOP_SECONDS = 14
"""Seconds from the signal to the end of the process. Draining takes up to nine of them (`app.answering.manager`),
and the rest is for closing connections."""


def end_in_time() -> None:
    """End this process `STOP_SECONDS` from now, should it not have ended before, and print where each thread was.

    A thread that never returns keeps Python from exiting, and a server that does not answer keeps a connection from
    closing. What this process still holds then goes to other processes, as after a crash.

    The timer is a thread of C, which needs nothing of Python. An alarm of the kernel would not do: as the first process
    of a container, this one is not ended by signals without a handler.
    """
    faulthandler.dump_traceback_later(STOP_SECONDS, exit=True)
