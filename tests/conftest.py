"""Real parts for every test: embedded servers, the schema, the embedding model."""

# ruff: noqa: E402 - the environment is cleared before the imports below

import asyncio
import dis
import gc
import os
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, wraps
from inspect import iscoroutinefunction
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

# Before anything of ours is imported, so that no test reaches the developer's own data or a paid provider.
for _name in list(os.environ):
    if _name.startswith(
        ("ASKGRAPH_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "COHERE_", "LANGSMITH_", "LANGCHAIN_", "AWS_")
    ) or _name in ("DATABASE_URL", "REDIS_URL"):
        del os.environ[_name]
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
# Files in memory, where there is room for them: a disk takes ten times as long to make the 300 files of each database.
_memory = os.statvfs("/dev/shm") if Path("/dev/shm").is_dir() else None
if _memory and _memory.f_bavail * _memory.f_frsize > 2**32 and not _memory.f_flag & os.ST_NOEXEC:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
# What is imported stays: looking through it for garbage takes a tenth of the time of all tests.
gc.disable()
# A shell starts what runs in the background with Ctrl-C ignored, and every process that a test starts would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest

# Before they are imported, so that what they assert is shown with its values.
pytest.register_assert_rewrite("tests.contracts", "tests.asking")

import certifi
import hypothesis
import psycopg
import pytest_asyncio
import redis.asyncio
import uvloop
from psycopg.sql import SQL, Identifier
from psycopg.types import TypeInfo
from pydantic import SecretStr

from app.adapters.embedded import Servers, open_servers, postgres

if TYPE_CHECKING:
    from app.adapters.embeddings.onnx import OnnxEmbedder
    from app.adapters.redis.connection import RedisServer
    from app.ingest.parser_workers import ParserWorkers
    from app.settings import Settings
    from app.wiring.services import Services
    from tests.wire.s3 import Bucket

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

TEMPLATE = "template_of_tests"
# Less than `timeout` of pyproject.toml, which ends the whole process and all tests that wait for it.
HANGS_SECONDS = 150

# The loop of tests is that of every command. Named by pytest-asyncio's hook it would be a parameter of each test, with
# which all that lives for the session, the servers too, would begin anew.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

_numbers = count(1)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _fail_where_it_hangs(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Fail the test that waits too long, with the place where it waited, and go on with the others."""

    @wraps(test)
    async def limited(*arguments: Any, **named: Any) -> None:
        async with asyncio.timeout(HANGS_SECONDS):
            await test(*arguments, **named)

    return limited


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take long, so that none is left at the end for one process alone: those that start
    programs before those with a database, and these before those that only compute."""
    for item in items:
        if isinstance(item, pytest.Function) and iscoroutinefunction(item.obj):
            item.obj = _fail_where_it_hangs(item.obj)
    begun_first = ("page", "cli", "client", "studio", "upgrades", "tests", "dialects", "runs", "adapters", "ingest")
    begun_last = ("evaluation", "nodes", "domain", "wire")
    order = {name: place for place, name in enumerate(begun_first)} | dict.fromkeys(begun_last, 100)
    items.sort(key=lambda item: order.get(item.path.parent.name, 50))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Say how a process of tests ended that should not have: by which signal, or with which status."""
    if error:
        print(f"\n{node.gateway.id} ended with status {node.gateway._io.popen.wait()}", file=sys.__stderr__)


def find_programs() -> dict[str, str]:
    """The part of the environment by which a program finds others, and its own modules."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


def _replace_database(url: str, name: str) -> str:
    return url.replace("@/askgraph?", f"@/{name}?")


@cache
def _administer(url: str) -> psycopg.Connection[Any]:
    """A connection for the whole session, whatever loop a test runs in."""
    return psycopg.connect(url, autocommit=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Servers]:
    """Postgres and Valkey, for the whole session."""
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Nothing outlives the session, so that no commit, and no database that goes, need wait for a disk.
            patch.setitem(postgres.SETTINGS, "fsync", "off")
            # A worker of the server's own vacuum belongs to a superuser: while one is at work in a database, the role
            # of these tests may not drop it WITH (FORCE).
            patch.setitem(postgres.SETTINGS, "autovacuum", "off")
            running = await stack.enter_async_context(open_servers(tmp_path_factory.mktemp("servers")))
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def template(servers: Servers) -> AsyncIterator[str]:
    """A database with the schema and nothing in it."""
    from app.adapters.postgres.migrations import upgrade

    assert servers.database_url
    with _administer(servers.database_url) as administration:
        administration.execute(SQL("CREATE DATABASE {}").format(Identifier(TEMPLATE)))
        await upgrade(_replace_database(servers.database_url, TEMPLATE))
        yield TEMPLATE


@asynccontextmanager
async def create_database(servers: Servers, template: str) -> AsyncIterator[str]:
    assert servers.database_url
    name = f"test_{next(_numbers)}"
    # Copying files takes half the computing of the other strategy, which writes all pages to the log.
    create = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    administration = _administer(servers.database_url)
    administration.execute(create.format(Identifier(name), Identifier(template)))
    yield _replace_database(servers.database_url, name)
    administration.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@pytest_asyncio.fixture
async def database_url(servers: Servers, template: str) -> AsyncIterator[str]:
    """An empty database with the schema, of this test alone."""
    async with create_database(servers, template) as url:
        yield url


@pytest_asyncio.fixture
async def other_database_url(servers: Servers, template: str) -> AsyncIterator[str]:
    """A second one."""
    async with create_database(servers, template) as url:
        yield url


@pytest_asyncio.fixture
async def redis_url(servers: Servers) -> str:
    """An empty Valkey."""
    assert servers.redis_url
    async with redis.asyncio.Redis.from_url(servers.redis_url) as client:
        await client.flushall()
    return servers.redis_url


@pytest_asyncio.fixture
async def redis_server(redis_url: str) -> AsyncIterator["RedisServer"]:
    """Connections to it. They wait as long as a machine that runs four tests at once may need."""
    from app.adapters.redis.connection import RedisServer

    server = RedisServer(redis_url, timeout_seconds=10)
    yield server
    await server.close()


class _RememberingSession:
    """The model that ships, which computes each text once in this process: most tests read the same few documents."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._results: dict[bytes, Any] = {}

    def run(self, outputs: list[str], inputs: dict[str, Any]) -> Any:
        ids = inputs["input_ids"]
        if (known := self._results.get(ids.tobytes())) is None:
            known = self._session.run(outputs, inputs)
            if ids.shape[1] < 64:
                self._results[ids.tobytes()] = known
        return known


@pytest.fixture(scope="session", autouse=True)
def computed_once() -> Iterator[None]:
    """What opening services computes anew each time, and always with the same result, is computed once in a process:
    it would take most of the time of a test that opens them."""
    import redis.utils
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.pregel import _utils
    from pgvector.psycopg import register  # type: ignore[import-untyped]

    from app.adapters.embeddings.onnx import OnnxEmbedder
    from app.wiring import runs
    from app.wiring.fingerprint import fingerprint_installation
    from graphs.answer import STEPS, build_answer_graph

    load = OnnxEmbedder.load
    shipped = cache(load)

    def load_once(model_path: Path | None = None, threads: int | None = None) -> OnnxEmbedder:
        if model_path:
            return load(model_path, threads)
        model = shipped()
        return OnnxEmbedder(sessions(model._session), model._tokenizer, threads or model._workers)

    sessions = cache(_RememberingSession)
    instructions = cache(lambda code: list(dis.get_instructions(code)))
    build = cache(lambda _, seconds: build_answer_graph(InMemorySaver(), seconds))

    def build_once(saver: Any, seconds: float) -> Any:
        graph: Any = build(tuple(map(id, STEPS.values())), seconds)
        return graph.copy({"checkpointer": saver.with_allowlist(graph.checkpointer.serde._allowed_msgpack_modules)})

    types: dict[tuple[str, str], Any] = {}

    async def fetch_once(connection: psycopg.AsyncConnection[Any], name: str) -> Any:
        # Databases of tests are copies of one, in which a type has the same number.
        database = connection.info.dbname
        key = TEMPLATE if database.startswith("test_") else database, name
        if key not in types or not database.startswith("test_"):
            types[key] = await TypeInfo.fetch(connection, name)
        return types[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnnxEmbedder, "load", load_once)
        patch.setattr(_utils, "dis", SimpleNamespace(get_instructions=instructions))
        patch.setattr(runs, "build_answer_graph", build_once)
        patch.setattr(runs, "fingerprint_installation", cache(fingerprint_installation))
        patch.setattr(register, "TypeInfo", SimpleNamespace(fetch=fetch_once))
        patch.setattr(redis.utils, "get_lib_version", cache(redis.utils.get_lib_version))
        yield


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """A service gives up on Redis after a fraction of a second, and on a query that it can do without after three,
    which a busy machine may take for every reply."""
    from app.adapters.redis.connection import RedisServer
    from nodes.sources import optional

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cast(dict[str, Any], RedisServer.__init__.__kwdefaults__), "timeout_seconds", 10)
        patch.setattr(optional, "TIMEOUT_SECONDS", 60)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every client of a provider reads the certificates of all authorities, which takes 40 ms of CPU, several times a
    test. Nobody here is asked for a certificate, so that one of them will do."""
    end = "-----END CERTIFICATE-----\n"
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(certifi.contents().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session")
def embedder() -> "OnnxEmbedder":
    """The model that ships."""
    from app.adapters.embeddings.onnx import OnnxEmbedder

    return OnnxEmbedder.load(threads=2)


_reads_here = True


@pytest.fixture(scope="session", autouse=True)
def files_read_here() -> Iterator[None]:
    """Each service starts a process to read its first file, which takes a third of a second of computing. Tests that are
    not about these processes do their work in this one; see `parser_processes`."""
    from app.ingest.parser_workers import ParserWorkers

    run = ParserWorkers.run

    async def run_here(self: ParserWorkers, job: Any, *args: Any, **options: Any) -> Any:
        if not _reads_here:
            return await run(self, job, *args, **options)
        # What cannot be sent to another process and back fails here as well.
        return pickle.loads(pickle.dumps(await asyncio.to_thread(pickle.loads(pickle.dumps(job)))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParserWorkers, "run", run_here)
        yield


@pytest.fixture
def parser_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read by processes of their own, as they are by a service."""
    monkeypatch.setattr(sys.modules[__name__], "_reads_here", False)


@pytest_asyncio.fixture
async def parsers() -> AsyncIterator["ParserWorkers"]:
    """Processes that read files."""
    from app.ingest.parser_workers import ParserWorkers

    async with ParserWorkers() as workers:
        yield workers


@pytest_asyncio.fixture
async def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator["Bucket"]:
    """An empty bucket of S3-compatible storage, which the environment names."""
    from tests.wire.s3 import Bucket

    bucket = Bucket(tmp_path, monkeypatch)
    await bucket.start()
    yield bucket
    await bucket.stop()


@pytest.fixture
def settings(database_url: str, redis_url: str) -> "Settings":
    """A deployment on this test's own database and cache, without a model key."""
    environment = frozenset(item for item in os.environ.items() if item[0] != "PYTEST_CURRENT_TEST")
    settings = _read_settings(environment, Path.cwd())
    return settings.model_copy(update={"database_url": SecretStr(database_url), "redis_url": SecretStr(redis_url)})


@cache
def _read_settings(_environment: frozenset[tuple[str, str]], _folder: Path) -> "Settings":
    from app.settings import read_settings

    return read_settings(load_samples=False)


@pytest_asyncio.fixture
async def services(settings: "Settings") -> AsyncIterator["Services"]:
    """Everything open."""
    from app.wiring.services import open_services

    async with open_services(settings) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_services(servers: Servers, template: str) -> AsyncIterator["Services"]:
    """Everything open, once for the tests of a module that run in its loop and get along with each other."""
    from app.settings import read_settings
    from app.wiring.services import open_services

    async with create_database(servers, template) as url:
        settings = read_settings(DATABASE_URL=url, REDIS_URL=servers.redis_url, load_samples=False)
        async with open_services(settings) as opened:
            yield opened


HANDBOOK = b"""# Station handbook

## Warranty
The Falke weather station has a warranty of 36 months from the date of purchase.
Claims are handled by Petra Lindqvist in Malmo.

## Battery
The battery of the Falke lasts 14 months. Replace it with two AA lithium cells.

## Calibration
The barometer of the Falke must be calibrated every 12 months against the reference in room B204.
"""

MANUAL = b"""# Amsel manual

## Warranty
The Amsel rain gauge has a warranty of 24 months. Its funnel must be cleaned every 8 weeks.

## Battery
The battery of the Amsel lasts 9 months.
"""


DOCUMENTS = {"handbook.md": HANDBOOK, "manual.md": MANUAL}


@pytest_asyncio.fixture
async def library(services: "Services") -> dict[str, str]:
    """Two small documents in the default workspace: ids by title."""
    reports = [
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK),
        await services.library.ingestion.add("default", "manual.md", MANUAL),
    ]
    return {str(r.title): str(r.document_id) for r in reports}
