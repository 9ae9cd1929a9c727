"""The names that a client may choose."""

WORKSPACE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Pattern of a workspace's name."""

GROUP = r"^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,99}$"
"""Pattern of a group's name."""

THREAD_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""Pattern of a thread's id."""
