"""Commands that use the running server of their home instead of loading the models again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

QUESTION = "How long is the warranty of the Falke?"

MODELS = {"onnxruntime", "langgraph", "openai", "graphs"}

MAIN = """
import sys
import app.cli
try: app.cli.main()
finally: print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@dataclass
class Done:
    """The exit code, the output, and the packages that were imported."""

    code: int
    stdout: str
    stderr: str
    imported: set[str]


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return kept | {"HOME": str(home), "ASKGRAPH_HOME": str(home), "ASKGRAPH_LOAD_SAMPLES": "false"}


def run(home: Path, *arguments: str, **more: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        env=environment(home) | more,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    *said, imported = done.stderr.splitlines()
    return Done(done.returncode, done.stdout, "\n".join(said), set(imported.split()))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose server runs."""
    home = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment(home), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert any("Ctrl-C" in line for line in server.stdout)
        yield home
        server.send_signal(signal.SIGINT)


@pytest.mark.timeout(300)
def test_a_session_loads_no_model(home: Path, tmp_path: Path) -> None:
    (tmp_path / "falke.md").write_text("# Falke\n\n## Warranty\n\nThe Falke has a warranty of 36 months.\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    ingested = run(home, "ingest", str(tmp_path), "--json")
    report = json.loads(ingested.stdout)
    assert ingested.code == 1
    assert sorted(d["status"] for d in report["documents"]) == ["added", "failed"]
    assert {d["source"] for d in report["documents"]} >= {str(tmp_path / "falke.md")}

    asked = run(home, "ask", QUESTION)
    assert (asked.code, "36 months" in asked.stdout, "Falke › Warranty" in asked.stdout) == (0, True, True)
    asked_again = run(home, "ask", QUESTION, "--json")
    if not json.loads(asked_again.stdout)["cached"]:
        # On a busy machine Redis may answer too late once; the answer is then not kept.
        asked_again = run(home, "ask", QUESTION, "--json")
    answer = json.loads(asked_again.stdout)
    assert (answer["cached"], answer["sources"][0]["title"]) == (True, "Falke")
    shown = run(home, "show", answer["run_id"], "--json")
    assert json.loads(shown.stdout)["answer"] == answer["answer"]
    reasons = run(home, "why", answer["run_id"])
    assert "answered by local in mode standard, from the cache" in " ".join(reasons.stdout.split())
    assert json.loads(run(home, "runs", "--failed", "--json").stdout)["runs"] >= 1

    [document] = json.loads(run(home, "documents", "--json").stdout)
    refused = run(home, "delete", document["id"], "nonsense")
    assert refused.code == 2
    assert "There is no document 'nonsense'" in refused.stderr
    refused = run(home, "delete", "falke.md", "--everywhere")
    assert refused.code == 2
    assert document["id"] in refused.stderr
    assert run(home, "delete", document["id"], "--everywhere", "--dry-run").code == 0
    assert json.loads(run(home, "documents", "--json").stdout) == [document]
    deleted = run(home, "delete", document["id"], "--yes")
    assert deleted.code == 0
    assert json.loads(run(home, "documents", "--json").stdout) == []

    for done in (ingested, asked, asked_again, shown, reasons, deleted):
        assert not done.imported & MODELS


@pytest.mark.timeout(300)
def test_a_server_of_another_machine_is_asked_by_its_address(home: Path, tmp_path: Path) -> None:
    """The other machine is another home."""
    url = json.loads((home / "server.json").read_text())["url"]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "falke.md").write_text(
            "# Falke\n\n## Warranty\n\nThe Falke has a warranty of 36 months.\n"
        )
    (tmp_path / "a" / "falke.md.meta.json").write_text('{"team": "sales"}')
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")

    def send(*arguments: str) -> Done:
        done = run(tmp_path / "none", "--server", url, *arguments, "-w", "far")
        assert not done.imported & (MODELS | {"psycopg"} if arguments[0] == "ask" else MODELS), arguments
        return done

    ingested = send("ingest", str(tmp_path), "--json")
    report = json.loads(ingested.stdout)
    assert sorted((d["status"], d["code"]) for d in report["documents"]) == [
        ("added", None), ("failed", "unreadable_document"), ("failed", "unreadable_document"),
    ]  # fmt: skip
    assert "same name" in str(report)
    assert "unchanged" in send("ingest", str(tmp_path / "a")).stdout
    for option, status in ("--meta=region=eu", "updated"), ("-wfar", "unchanged"), ("--no-meta", "updated"):
        assert status in send("ingest", str(tmp_path / "a"), option).stdout
    queued = send("ingest", str(tmp_path / "a"), "--background").stdout
    assert "1 file queued, 0 failed" in queued
    assert queued.split()[1] in send("documents", "--waiting").stdout
    asked = send("ask", QUESTION)
    assert (asked.code, "36 months" in asked.stdout) == (0, True)
    assert "team=sales" in send("documents").stdout
    [listed] = json.loads(send("runs", "--json").stdout)["runs"]
    assert "answered by local" in send("why", listed["run_id"]).stdout
    assert json.loads(send("costs", "--json").stdout)["total"]["runs"] == 1
    made = httpx.post(f"{url}/api/assistants", params={"workspace": "far"}, json={"name": "our desk"})
    assert made.status_code == 201
    assert json.loads(send("ask", QUESTION, "--mode", "our desk", "--json").stdout)["mode"] == "our desk@1"
    assert "There is no mode 'our desk'" in run(tmp_path / "none", "--server", url, "ask", "?", "-m", "our desk").stderr
    refused = run(tmp_path / "none", "keys", "list", ASKGRAPH_SERVER=url)
    assert (refused.code, "works on the data of this machine" in refused.stderr) == (2, True)
    assert not (tmp_path / "none").exists()


def test_with_other_settings_the_server_is_not_used(home: Path) -> None:
    done = run(home, "why", "nonsense", ASKGRAPH_MODEL_TIMEOUT="59")
    assert done.code == 2
    assert done.imported & MODELS


@pytest.mark.timeout(300)
def test_what_a_command_changes_is_recorded_once_with_the_address_that_it_came_from(home: Path, tmp_path: Path) -> None:
    (tmp_path / "amsel.md").write_text("# Amsel\n\nThe Amsel has a warranty of 24 months.\n")
    server = json.loads((home / "server.json").read_text())

    def list_entries() -> list[tuple[str, str, str | None, int]]:
        listed = json.loads(run(home, "audit", "--json").stdout)
        return [
            (e["action"].partition("/api")[0].strip(), e["targets"][-1], e["address"], e["status"])
            for e in listed
            if e["workspace_id"] == "audited"
        ]

    assert run(home, "ingest", str(tmp_path / "amsel.md"), "-w", "audited").code == 0
    [document] = json.loads(run(home, "documents", "-w", "audited", "--json").stdout)
    assert run(home, "delete", document["id"], "--yes", "-w", "audited").code == 0
    assert list_entries() == [
        ("DELETE", "workspace=audited", "127.0.0.1", 204),
        ("askgraph ingest", str(tmp_path / "amsel.md"), None, 200),
    ]
    # Everybody on this machine could say so.
    forged = {"Authorization": f"Bearer {server['token']}", "X-Forwarded-For": "203.0.113.7"}
    httpx.delete(f"{server['url']}/api/documents/none?workspace=audited", headers=forged)
    assert list_entries()[0] == ("DELETE", "workspace=audited", "127.0.0.1", 404)
    # Whoever looks reads what they sent, and no more.
    httpx.delete(f"{server['url']}/api/documents/%1b%5b1A%1b%5b2K?workspace=audited", headers=forged)
    told = run(home, "audit")
    assert (r"\u001b[1A\u001b[2K" in told.stdout, "\x1b" in told.stdout + told.stderr) == (True, False)


@pytest.mark.timeout(300)
def test_whoever_may_enter_one_workspace_need_not_name_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "wren.md").write_text("# Wren\n\nThe Wren has a warranty of 18 months.\n")
    options = ("--workspace", "only", "--right", "ask", "--right", "ingest", "--json")
    key = json.loads(run(home, "keys", "create", "second user", *options).stdout)["key"]
    server = json.loads((home / "server.json").read_text())["url"]
    theirs = {"ASKGRAPH_SERVER": server, "ASKGRAPH_API_KEY": key}
    with httpx.Client(headers={"Authorization": f"Bearer {key}"}) as client:
        # The server takes notice of a new key within five seconds.
        deadline = time.monotonic() + 30
        while client.get(f"{server}/api/documents").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert "added" in run(tmp_path / "none", "ingest", str(tmp_path / "wren.md"), **theirs).stdout
    assert "Wren" in run(tmp_path / "none", "documents", **theirs).stdout
    asked = run(tmp_path / "none", "ask", "How long is the warranty of the Wren?", **theirs)
    assert (asked.code, "18 months" in asked.stdout) == (0, True), asked.stderr
    refused = run(tmp_path / "none", "documents", "-w", "far", **theirs)
    assert (refused.code, "There is no workspace 'far'" in refused.stderr) == (2, True)
    assert "second user (" in run(home, "audit").stdout
