"""The client that blocks: the methods of the one for asyncio, over a connection on which they never have to wait."""

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from askgraph.async_client import AsyncClient
from askgraph.connection import BlockingConnection

Given = ParamSpec("Given")
Result = TypeVar("Result")


class _BlockedClient(AsyncClient):
    _kind = BlockingConnection


def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that is never suspended."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise RuntimeError("The blocking client has awaited something else than its connection.")


def _blocking(
    method: Callable[Concatenate[AsyncClient, Given], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate["Client", Given], Result]:
    """Make the method that returns what this one returns once it is awaited."""

    @wraps(method)
    def call(client: "Client", /, *arguments: Given.args, **options: Given.kwargs) -> Result:
        return _finish(method(client._client, *arguments, **options))

    return call


def _yielding(
    method: Callable[Concatenate[AsyncClient, Given], AsyncGenerator[Result]],
) -> Callable[Concatenate["Client", Given], Generator[Result]]:
    """Make the method that yields what this one yields."""

    @wraps(method)
    def iterate(client: "Client", /, *arguments: Given.args, **options: Given.kwargs) -> Generator[Result]:
        results = method(client._client, *arguments, **options)
        try:
            while True:
                yield _finish(anext(results))
        except StopAsyncIteration:
            pass
        finally:
            _finish(results.aclose())

    return iterate


class Client:
    """Asks a server, or one that it starts for itself.

    ::

        with Client("https://ask.example.com", key="…") as client:
            answer = client.ask("How long is the warranty?")

    Without `url`, it is read from `ASKGRAPH_SERVER`; where that is unset, too, the server that runs in the home folder
    is used, or one is started there, as a process of its own on a free loopback port, which ends with this object.
    Making the object waits until the service is ready, a few seconds.

    All methods raise what `askgraph.errors` describes. An object may be used by several threads.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        workspace: str | None = None,
        home: str | os.PathLike[str] | None = None,
        http: Mapping[str, Any] | None = None,
    ) -> None:
        """`key` is read from `ASKGRAPH_API_KEY` unless given. `workspace` is that of all calls that name none. `home`
        is the data folder of an embedded service, unless given `ASKGRAPH_HOME` or `~/.askgraph`. `http` are further
        options of `httpx.Client`, such as `verify` or `timeout`.
        """
        self._client = _BlockedClient(url, key=key, workspace=workspace, home=home, http=http)
        self.__enter__()

    def __enter__(self) -> Self:
        _finish(self._client.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The server's address."""
        return self._client.url

    @property
    def workspace(self) -> str | None:
        """The workspace of all calls that name none."""
        return self._client.workspace

    @workspace.setter
    def workspace(self, name: str | None) -> None:
        self._client.workspace = name

    close = _blocking(AsyncClient.close)
    ask = _blocking(AsyncClient.ask)
    stream = _yielding(AsyncClient.stream)
    follow = _yielding(AsyncClient.follow)
    cancel = _blocking(AsyncClient.cancel)
    search = _blocking(AsyncClient.search)
    assistants = _blocking(AsyncClient.assistants)
    save_assistant = _blocking(AsyncClient.save_assistant)
    delete_assistant = _blocking(AsyncClient.delete_assistant)
    threads = _blocking(AsyncClient.threads)
    thread = _blocking(AsyncClient.thread)
    delete_thread = _blocking(AsyncClient.delete_thread)
    upload = _blocking(AsyncClient.upload)
    ingestion = _blocking(AsyncClient.ingestion)
    cancel_ingestion = _blocking(AsyncClient.cancel_ingestion)
    documents = _blocking(AsyncClient.documents)
    document = _blocking(AsyncClient.document)
    delete_document = _blocking(AsyncClient.delete_document)
    runs = _blocking(AsyncClient.runs)
    run = _blocking(AsyncClient.run)
    why = _blocking(AsyncClient.why)
    sets = _blocking(AsyncClient.sets)
    run_set = _blocking(AsyncClient.run_set)
    rate = _blocking(AsyncClient.rate)
    send = _blocking(AsyncClient.send)
    read_frames = _yielding(AsyncClient.read_frames)
