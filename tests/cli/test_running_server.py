"""Commands that use the running server of their home instead of loading the models again."""

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.cli.commands import ALONE, environment, read, run

QUESTION = "How long is the warranty of the Falke?"
FALKE = "# Falke\n\n## Warranty\n\nThe Falke has a warranty of 36 months.\n"

MODELS = {"onnxruntime", "langgraph", "openai", "graphs"}

MAIN = """
import sys
import app.cli
try: app.cli.main()
finally: print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def list_imported(home: Path, *arguments: str, code: int = 0, **variables: str) -> tuple[str, set[str]]:
    """Run the command in a process of its own. Gives its output, and the packages that were imported."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        env=environment(home) | ALONE | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def find_server(home: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((home / "data" / "server.json").read_text())
    return found


def test_a_session_loads_no_model(home: Path, tmp_path: Path) -> None:
    (tmp_path / "falke.md").write_text(FALKE)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    ingested, imported = list_imported(home, "ingest", str(tmp_path), "--json", code=1)
    assert not imported & MODELS
    report = json.loads(ingested)
    assert sorted(d["status"] for d in report["documents"]) == ["added", "failed"]
    assert {d["source"] for d in report["documents"]} >= {str(tmp_path / "falke.md")}

    asked, imported = list_imported(home, "ask", QUESTION)
    assert not imported & MODELS
    assert ("36 months" in asked, "Falke › Warranty" in asked) == (True, True)
    answer = read(run(home, "ask", QUESTION, "--json"))
    if not answer["cached"]:
        # On a busy machine Redis may answer too late once; the answer is then not kept.
        answer = read(run(home, "ask", QUESTION, "--json"))
    assert (answer["cached"], answer["sources"][0]["title"]) == (True, "Falke")
    assert read(run(home, "show", answer["run_id"], "--json"))["answer"] == answer["answer"]
    reasons = run(home, "why", answer["run_id"]).stdout
    assert "answered by local in mode standard, from the cache" in " ".join(reasons.split())
    assert read(run(home, "runs", "--failed", "--json"))["runs"] >= 1

    [document] = read(run(home, "documents", "--json"))
    refused = run(home, "delete", document["id"], "nonsense", code=2)
    assert "There is no document 'nonsense'" in refused.stderr
    assert document["id"] in run(home, "delete", "falke.md", "--everywhere", code=2).stderr
    run(home, "delete", document["id"], "--everywhere", "--dry-run")
    assert read(run(home, "documents", "--json")) == [document]
    run(home, "delete", document["id"], "--yes")
    assert read(run(home, "documents", "--json")) == []


def test_a_server_of_another_machine_is_asked_by_its_address(home: Path, tmp_path: Path) -> None:
    """The other machine is another home."""
    url = find_server(home)["url"]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "falke.md").write_text(FALKE)
    (tmp_path / "a" / "falke.md.meta.json").write_text('{"team": "sales"}')
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")

    def send(*arguments: str, code: int = 0) -> str:
        return run(tmp_path, "--server", url, *arguments, "-w", "far", code=code).stdout

    report = json.loads(send("ingest", str(tmp_path), "--json", code=1))
    assert sorted((d["status"], d["code"]) for d in report["documents"]) == [
        ("added", None), ("failed", "unreadable_document"), ("failed", "unreadable_document"),
    ]  # fmt: skip
    assert "same name" in str(report)
    assert "unchanged" in send("ingest", str(tmp_path / "a"))
    for option, status in ("--meta=region=eu", "updated"), ("-wfar", "unchanged"), ("--no-meta", "updated"):
        assert status in send("ingest", str(tmp_path / "a"), option)
    queued = send("ingest", str(tmp_path / "a"), "--background")
    assert "1 file queued, 0 failed" in queued
    assert queued.split()[1] in send("documents", "--waiting")
    asked, imported = list_imported(tmp_path, "--server", url, "ask", QUESTION, "-w", "far")
    assert "36 months" in asked
    assert not imported & (MODELS | {"psycopg"})
    assert "team=sales" in send("documents")
    [listed] = json.loads(send("runs", "--json"))["runs"]
    assert "answered by local" in send("why", listed["run_id"])
    made = httpx.post(f"{url}/api/assistants", params={"workspace": "far"}, json={"name": "our desk"})
    assert made.status_code == 201
    assert json.loads(send("ask", QUESTION, "--mode", "our desk", "--json"))["mode"] == "our desk@1"
    unknown = run(tmp_path, "--server", url, "ask", "?", "-m", "our desk", code=2).stderr
    assert "There is no mode 'our desk'" in unknown
    refused = run(tmp_path, "keys", "list", code=2, ASKGRAPH_SERVER=url).stderr
    assert "works on the data of this machine" in refused
    assert not (tmp_path / "data").exists()


def test_what_a_command_changes_is_recorded_once_with_the_address_that_it_came_from(home: Path, tmp_path: Path) -> None:
    (tmp_path / "amsel.md").write_text("# Amsel\n\nThe Amsel has a warranty of 24 months.\n")
    server = find_server(home)

    def list_entries() -> list[tuple[str, str, str | None, int]]:
        return [
            (e["action"].partition("/api")[0].strip(), e["targets"][-1], e["address"], e["status"])
            for e in read(run(home, "audit", "--json"))
            if e["workspace_id"] == "audited"
        ]

    run(home, "ingest", str(tmp_path / "amsel.md"), "-w", "audited")
    [document] = read(run(home, "documents", "-w", "audited", "--json"))
    run(home, "delete", document["id"], "--yes", "-w", "audited")
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


def test_whoever_may_enter_one_workspace_need_not_name_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "wren.md").write_text("# Wren\n\nThe Wren has a warranty of 18 months.\n")
    options = ("--workspace", "only", "--right", "ask", "--right", "ingest", "--json")
    key = read(run(home, "keys", "create", "second user", *options))["key"]
    server = find_server(home)["url"]
    theirs = {"ASKGRAPH_SERVER": server, "ASKGRAPH_API_KEY": key}
    with httpx.Client(headers={"Authorization": f"Bearer {key}"}) as client:
        # The server takes notice of a new key within five seconds.
        deadline = time.monotonic() + 30
        while client.get(f"{server}/api/documents").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert "added" in run(tmp_path, "ingest", str(tmp_path / "wren.md"), **theirs).stdout
    assert "Wren" in run(tmp_path, "documents", **theirs).stdout
    assert "18 months" in run(tmp_path, "ask", "How long is the warranty of the Wren?", **theirs).stdout
    refused = run(tmp_path, "documents", "-w", "far", code=2, **theirs)
    assert "There is no workspace 'far'" in refused.stderr
    assert "second user (" in run(home, "audit").stdout
