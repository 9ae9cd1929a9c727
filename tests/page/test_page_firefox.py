"""The main path in Firefox, which is driven by WebDriver BiDi; skipped where there is none."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(FIREFOX is None, reason="There is no firefox on the PATH."),
]


class Window:
    """A window of the browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._sent = 0
        self.errors: list[str] = []
        self.context = ""

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._sent += 1
        await self._socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        async for message in self._socket:
            said = json.loads(message)
            if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
                self.errors.append(said["params"]["text"])
            if said.get("id") == self._sent:
                assert said["type"] == "success", said
                return dict(said["result"])
        raise EOFError

    async def run(self, script: str) -> dict[str, Any]:
        """What the script comes to."""
        target = {"context": self.context}
        done = await self.send(
            "script.evaluate", expression=script, target=target, awaitPromise=True, userActivation=True
        )
        assert done["type"] == "success", done
        return dict(done["result"])

    async def see(self, words: str, within: str) -> None:
        """Wait until the words stand there."""
        wanted = f"[...document.querySelectorAll({json.dumps(within)})].some((each) => each.textContent.includes({json.dumps(words)}))"
        await self.run(
            f"new Promise((seen) => {{ const look = () => ({wanted} ? seen() : setTimeout(look, 50)); look(); }})"
        )

    async def go(self, address: str) -> None:
        await self.send("browsingContext.navigate", context=self.context, url=address, wait="complete")

    async def write(self, text: str) -> None:
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        await self.send(
            "input.performActions", context=self.context, actions=[{"type": "key", "id": "k", "actions": keys}]
        )


@asynccontextmanager
async def open_firefox(folder: Path) -> AsyncIterator[Window]:
    assert FIREFOX
    command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(folder)]
    process = await asyncio.create_subprocess_exec(
        *command, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"}, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr
        await process.stderr.readuntil(b"BiDi listening on ws://127.0.0.1:")
        port = (await process.stderr.readline()).decode().strip()
        async with connect(f"ws://127.0.0.1:{port}/session", max_size=None) as socket:
            window = Window(socket)
            await window.send("session.new", capabilities={})
            await window.send("session.subscribe", events=["log.entryAdded"])
            window.context = (await window.send("browsingContext.getTree"))["contexts"][0]["context"]
            yield window
    finally:
        process.kill()
        await process.wait()


async def test_firefox_asks_reads_adds_and_sets(site: str, tmp_path: Path) -> None:
    (tmp_path / "moewe.md").write_text("# Moewe tide gauge\n\nIt has a warranty of 84 months.\n")
    (tmp_path / "profile").mkdir()
    async with asyncio.timeout(120), open_firefox(tmp_path / "profile") as window:
        await window.go(site)
        await window.see("warranty", ".starters")
        await window.run("document.getElementById('question').focus()")
        await window.write("How long is the warranty of the Falke?\ue007")
        await window.see("36 months", ".turn.over .answer")
        await window.run("document.querySelector('.marker').click()")
        await window.see("36 months", ".evidence mark")
        await window.run("document.querySelector('[popovertarget=modes]').click()")
        menu = "document.getElementById('modes').getBoundingClientRect()"
        button = "document.querySelector('[popovertarget=modes]').getBoundingClientRect()"
        assert (await window.run(f"Math.abs({menu}.bottom - {button}.top) < 12"))["value"]
        files = await window.run("document.getElementById('files')")
        added = [str(tmp_path / "moewe.md")]
        await window.send(
            "input.setFiles", context=window.context, element={"sharedId": files["sharedId"]}, files=added
        )
        await window.see("Ask this file", ".left button")
        await window.go(f"{site}/settings")
        await window.see("There is no key yet", ".note")
        assert window.errors == []
