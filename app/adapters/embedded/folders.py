"""The folders in which the embedded servers keep their files."""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from app.adapters.embedded.privileges import Account
from domain.errors import ConfigurationError

SOCKET_PATH_BYTES = 107
"""Linux: sockaddr_un.sun_path is 108 bytes with the terminating zero (unix(7))."""

LONGEST_SOCKET = "/.s.PGSQL.5432"


@dataclass(frozen=True)
class Folders:
    """The folders below one HOME. Its path is absolute and resolved, so that two spellings of it are equal."""

    home: Path

    @classmethod
    def make(cls, home: Path) -> Self:
        """Create HOME and the folders that clients need. Raises `ConfigurationError`."""
        folders = cls(home.expanduser().resolve())
        try:
            folders.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (folders.locks, folders.logs):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"The folder {folders.home} cannot be used: {error.strerror}.") from error
        return folders

    @property
    def locks(self) -> Path:
        return self.home / "locks"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def sockets(self, server: str) -> Path:
        """Return the folder of `server`'s socket, the same for every process, so that an address outlives a restart.

        It lies below HOME if the path fits into a socket address and needs no quoting in a URL (libpq also splits hosts
        at commas), else below /tmp. `TMPDIR` is not used, because it differs between processes.
        """
        folder = self.home / f"{server}.run"
        room = SOCKET_PATH_BYTES - len(LONGEST_SOCKET)
        if re.fullmatch(r"[A-Za-z0-9._/-]+", str(folder)) and len(str(folder)) <= room:
            return folder
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path("/tmp", f"askgraph-{os.geteuid()}-{digest}-{server}")

    def make_sockets(self, server: str, account: Account) -> None:
        """Create the folder of the server's socket, accessible only to `account`. Raises `ConfigurationError`."""
        folder = self.sockets(server)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        # Anyone may create a folder in /tmp and wait there for our questions and documents.
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), account.uid):
            raise ConfigurationError(f"{folder} belongs to somebody else. Remove it, or use a shorter home folder.")
        folder.chmod(0o700)
        if account.uid != os.geteuid():
            os.chown(folder, account.uid, account.gid)
