"""Traces to LangSmith with bounded memory and exit time if its service does not answer.

LangChain and LangGraph trace by themselves when ``LANGSMITH_TRACING=true``, but their client never gives up.
`langsmith.configure` makes every tracer of the process use ours.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from uuid import UUID

import langsmith
from langsmith.schemas import BatchIngestConfig, LangSmithInfo
from langsmith.utils import LangSmithError, get_env_var, get_tracer_project, tracing_is_enabled
from urllib3.util import Retry

_CLOSE_SECONDS = 2.0
_TIMEOUT_MS = (2000, 5000)
_LOOK_UP_AGAIN_SECONDS = 60.0

# Settings that the SDK reads only from the environment. Values that are already set are kept.
_ENVIRONMENT = {
    # 1,000 waiting runs take about 50 MB if their states hold twenty chunks each; the SDK drops further runs.
    "LANGSMITH_TRACING_QUEUE_MAX_SIZE": "1000",
    # Threads that still try to send must not delay the exit.
    "LANGSMITH_USE_DAEMON": "true",
    # Compressed traces bypass the bounded queue and are sent by a thread pool that the exit waits for.
    "LANGSMITH_DISABLE_RUN_COMPRESSION": "true",
}

# Passed to the client so that it need not ask the service, which may not answer. At most four threads send, so that at
# most four batches of 100 are in memory besides the queue (by default 32).
_INFO = LangSmithInfo(
    batch_ingest_config=BatchIngestConfig(
        use_multipart_endpoint=True,
        size_limit=100,
        size_limit_bytes=20_971_520,
        scale_up_nthreads_limit=3,
        scale_up_qsize_trigger=200,
        scale_down_nempty_trigger=4,
    )
)


class Tracing:
    """The tracing client. LangChain's tracers find it themselves."""

    def __init__(self, client: langsmith.Client) -> None:
        self.client = client
        self._project_url: str | None = None
        self._asked_at = -_LOOK_UP_AGAIN_SECONDS
        self.trace_url(UUID(int=0))

    def trace_url(self, run_id: UUID | str) -> str | None:
        """Return the page of a run; None while the project's address is unknown. Never waits: the address is looked up
        in the background, at most once a minute, because a project exists only after its first trace."""
        if self._project_url is not None:
            return f"{self._project_url}/r/{run_id}?poll=true"
        if time.monotonic() - self._asked_at >= _LOOK_UP_AGAIN_SECONDS:
            self._asked_at = time.monotonic()
            threading.Thread(target=self._look_up_project, daemon=True).start()
        return None

    def _look_up_project(self) -> None:
        try:
            self._project_url = self.client.read_project(project_name=get_tracer_project()).url
        except (LangSmithError, OSError, ValueError):
            # There is no project yet, or the service does not answer: only the link is missing.
            self._project_url = None


@contextmanager
def open_tracing() -> Iterator[Tracing | None]:
    """Trace while the context is open; yields None unless ``LANGSMITH_TRACING=true``.

    On exit, queued traces are sent for at most 2 seconds.
    """
    if not tracing_is_enabled():
        yield None
        return
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # The SDK caches what it has read from the environment.
    get_env_var.cache_clear()  # type: ignore[attr-defined]
    client = langsmith.Client(
        timeout_ms=_TIMEOUT_MS, retry_config=Retry(total=1, backoff_factor=0.2, allowed_methods=None), info=_INFO
    )
    langsmith.configure(client=client)
    try:
        yield Tracing(client)
    finally:
        langsmith.configure(client=None)
        client.close(timeout=_CLOSE_SECONDS)


def untraced() -> AbstractContextManager[None]:
    """Switch tracing off within the block, whatever the environment says."""
    return langsmith.tracing_context(enabled=False)
