"""Opening the files of this machine that somebody named, and nothing else."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def resolve(path: Path) -> Path:
    """Follow all links of a path. Unlike `Path.resolve`, this stops at links that go round in circles."""
    with suppress(RuntimeError):  # There is nobody of this name.
        path = path.expanduser()
    return Path(os.path.realpath(path))


def open_file(path: Path) -> BinaryIO:
    """Open a file whose path is resolved. Raises `OSError` where something else has taken its place meanwhile: a pipe,
    for whose writer this does not wait, or a link to what nobody has named, also in a folder above it."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # not all on every system
        flags |= getattr(os, name, 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "It is no file")
        if _find_opened(file.fileno(), path, about) != str(path):
            raise OSError(errno.ELOOP, "Another file has taken its place")
    except OSError:
        file.close()
        raise
    return file


def _find_opened(descriptor: int, path: Path, about: os.stat_result) -> str:
    """Return the path of what is open: as the kernel says, or where it does not, as it is found."""
    with suppress(OSError):
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    return os.path.realpath(path) if os.path.samestat(path.stat(), about) else ""
