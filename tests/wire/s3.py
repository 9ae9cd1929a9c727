"""An S3 server on loopback that checks signatures."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from nanio.app import build_app
from nanio.auth.credentials import StaticCredentialResolver
from nanio.config import Settings

from app.adapters.s3 import PROBE
from tests.wire.serving import serve_app

BUCKET = "originals"
ACCESS_KEY, SECRET_KEY = "tester", "secret-of-tester"


class Bucket:
    """The bucket `BUCKET`, behind a server that can be stopped, whose address and keys are in the environment."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = monkeypatch
        self._server = AsyncExitStack()
        (folder / BUCKET).mkdir()
        for name, value in (("ACCESS_KEY_ID", ACCESS_KEY), ("SECRET_ACCESS_KEY", SECRET_KEY), ("REGION", "us-east-1")):
            monkeypatch.setenv(f"AWS_{name}", value)

    async def start(self) -> None:
        self._patch.setenv("AWS_ENDPOINT_URL", await self._server.enter_async_context(_serve(self.folder)))

    async def stop(self) -> None:
        await self._server.aclose()

    def list_objects(self) -> list[Path]:
        """The objects, each of which is a file, without the probe."""
        files = (self.folder / BUCKET).rglob("*")
        return [file for file in files if file.is_file() and file.name != PROBE and ".nanio" not in str(file)]


@asynccontextmanager
async def _serve(folder: Path) -> AsyncIterator[str]:
    credentials = StaticCredentialResolver({ACCESS_KEY: SECRET_KEY})
    async with serve_app(build_app(Settings(data_dir=folder, credentials=credentials))) as address:
        yield address
