"""Commands, on the server that runs in their home, which they use instead of loading the models again."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from importlib.metadata import version
from pathlib import Path
from signal import SIGINT

import httpx
import psycopg
import pytest

from app.adapters.embedded import open_servers
from tests.cli.commands import ALONE, ASKGRAPH, environment, read, run, run_installed
from tests.wire.openai import serve_openai

QUESTION = "How long is the warranty of the Falke?"
FALKE = "# Falke\n\n## Warranty\n\nThe Falke has a warranty of 36 months.\n"

MODELS = {"onnxruntime", "langgraph", "openai", "graphs"}

MAIN = """
import sys
import app.cli
try: app.cli.main()
finally: print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def documents(home: Path) -> Path:
    folder = home / "documents"
    folder.mkdir()
    (folder / "falke.md").write_text("# Falke\n\n## Warranty\n\nThe Falke has a warranty of 36 months.\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    return folder


def test_files_are_handed_over_and_listed(home: Path, documents: Path) -> None:
    arguments = ("ingest", "--background", str(documents / "falke.md"), "missing.md", "-w", "later")
    handed = read(run(home, *arguments, "--json", code=1))
    assert [report["code"] for report in handed["documents"]] == ["unreadable_document"]
    [first] = handed["ingestions"]
    shown = run(home, *arguments, code=1)
    assert "askgraph documents --waiting -w later" in shown.stdout
    assert "There is no such file" in shown.stderr
    second, listed = read(run(home, "documents", "--waiting", "-w", "later", "--json"))
    assert (second["ingestion_id"] in shown.stdout, listed["ingestion_id"]) == (True, first["ingestion_id"])
    assert first["ingestion_id"] in run(home, "documents", "--waiting", "-w", "later").stdout


@pytest.mark.timeout(400)
def test_the_words_that_nobody_sees_are_shown_on_request(home: Path) -> None:
    (home / "page.html").write_text("<p>Seen.</p><p hidden>[bold]secret words</p>")
    said = run(home, "ingest", "page.html", "-w", "unseen").stdout
    [command] = re.findall(r"`askgraph (documents --unseen \S+ -w unseen)`", said)
    shown = run(home, *command.split()).stdout
    assert shown == "2 words that cannot be seen\nin a hidden part of the page: [bold]secret words\n"
    assert read(run(home, *command.split(), "--json"))["words"] == 2
    arguments = [each for each in command.split() if each != "--unseen"]
    assert "Not read: 2 hidden words (in a hidden part of the page).\n" in run(home, *arguments).stdout
    assert read(run(home, *arguments, "--json"))["unread"][0]["number"] == 2
    assert "no document" in run(home, "documents", "--unseen", "x", code=2).stderr


def test_a_session_from_ingest_to_replay(home: Path, documents: Path) -> None:
    (documents / "falke.toml").write_text("wings = 2\n")
    report = read(run(home, "ingest", str(documents), "--json", code=1))
    assert (report["passed_over"], report["skipped"]) == (1, [str(documents / "falke.toml")])
    assert sorted(d["status"] for d in report["documents"]) == ["added", "failed"]
    again = read(run(home, "ingest", str(documents), "--json", code=1))
    assert again["chunks"] == 0

    answer = read(run(home, "ask", "How long is the warranty of the Falke?", "--json"))
    assert "36 months" in answer["answer"]
    keys = "answer citations route confidence verification thread_id run_id cached usage timings"
    assert set(keys.split()) <= set(answer)
    assert read(run_installed(home, "ask", "How long is the warranty of the Falke?", "--json"))["cached"]

    shown = run(home, "ask", "How long is the warranty of the Falke?", "--mode", "thorough").stdout
    assert "36 months" in shown
    assert "Sources" in shown
    assert "Falke › Warranty" in shown

    thread = answer["thread_id"]
    steps = read(run(home, "show", answer["run_id"], "--json"))["steps"]
    assert "36 months" in read(run(home, "why", answer["run_id"], "--json"))["facts"][-2]["text"]
    assert "There is no run 'nonsense'" in run(home, "why", "nonsense", code=2).stderr
    checkpoint = next(s["checkpoint_id"] for s in steps if s["node"] == "rerank")
    assert checkpoint in run(home, "show", answer["run_id"]).stdout
    replayed = read(run(home, "replay", thread, "--from", checkpoint, "--json"))
    assert replayed["answer"] == answer["answer"]
    shown = run(home, "replay", thread, "--from", checkpoint).stdout
    [branch] = re.findall(r"thread (\S+)", shown)
    assert branch != thread
    mode = run(home, "replay", thread, "--from", checkpoint, "--set", "mode=thorough", code=2)
    assert "--mode" in mode.stderr
    assert "cannot be set" in run(home, "replay", thread, "--from", checkpoint, "--set", "x=1", code=2).stderr
    assert "name the checkpoint" in run(home, "replay", thread, "--from", "x", code=2).stderr
    refused = run(home, "replay", answer["run_id"], "--after", "rerank", "--set", "profile.rerank.keep=1", code=2)
    assert "Replay the run with --from rerank" in refused.stderr

    (home / "guards").mkdir()
    run(home, "export", answer["run_id"], "guards/falke.askgraph")
    assert read(run(home, "why", "guards/falke.askgraph", "--json"))["run_id"] == answer["run_id"]
    assert "1 run, 0 of them differ." in run(home, "replay", "--tape", "strict", "guards").stdout
    assert "--tape strict FILE" in run(home, "replay", "guards/falke.askgraph", code=2).stderr
    assert "no file *.askgraph" in run(home, "replay", "--tape", "strict", str(documents), code=2).stderr

    [document] = read(run(home, "documents", "--json"))
    run(home, "delete", document["id"])
    assert read(run(home, "documents", "--json")) == []
    assert "36 months" not in read(run(home, "ask", "How long is the warranty of the Falke?", "--json"))["answer"]

    costs = read(run(home, "costs", "--json"))
    modes = {spent["name"]: (spent["runs"], spent["cached"], spent["cost"]) for spent in costs["costs"]}
    assert modes == {"standard": (5, 1, 0), "thorough": (1, 0, 0)}
    assert re.search(r"all +6 +1 +0 +0 +0 +0\.0000", run(home, "costs", "--by", "model").stdout)


def test_a_conversation_that_is_kept_no_longer_goes(home: Path) -> None:
    run(home, "ask", "Hello!", "--workspace", "tidy", "--create", "--json")
    assert "All 4 states can be continued from." in run(home, "doctor", "states", "--workspace", "tidy").stdout
    assert "is not a span of time" in run(home, "prune", "--older-than", "soon", code=2).stderr
    pruned = read(run(home, "prune", "--older-than", "0h", "--workspace", "tidy", "--json"))
    assert (pruned["threads"], pruned["runs"], pruned["states"]) == (1, 1, 4)


def test_a_new_thread_or_workspace_is_begun_only_where_that_is_said(home: Path) -> None:
    answer = read(run(home, "ask", "Hello!", "-w", "legal", "--thread", "contracts-2024", "--create", "--json"))
    assert answer["thread_id"] == "contracts-2024"
    assert "'legal'" in run(home, "ask", "Hello!", "-w", "leagl", code=2).stderr
    assert "contracts-2024" in run(home, "ask", "Hello!", "-w", "legal", "--thread", "contracts", code=2).stderr
    run(home, "ask", "Hello!", "-w", "legal", "--thread", "contracts-2024")
    assert "Nothing was rated" in run(home, "eval", "rated", "--rated", "7d").stdout
    assert not (home / "rated").exists()


def test_mistakes_are_said_in_one_line(home: Path) -> None:
    (home / "mistyped").mkdir()
    for arguments in (
        ("ask", ""),
        ("ask", "How long?", "--mode", "nonsense"),
        ("ask", "How long?", "--document", "nonsense"),
        ("show", "nonsense"),
        ("replay", "../nonsense"),
        ("ask", "How long?", "--thread", "no such thread"),
        ("documents", "-w", "no such/ws"),
        ("costs", "--since", "soon"),
        ("sync", "mistyped"),
    ):
        said = run(home, *arguments, code=2).stderr.strip()
        assert said.startswith("askgraph: ")
        assert "\n" not in said


async def test_a_turn_that_is_interrupted_is_recorded(home: Path) -> None:
    question = "Why does somebody press Ctrl-C, and what comes of it?"
    async with serve_openai(ttft=60) as server, open_servers(home / "data") as servers:
        process = await asyncio.create_subprocess_exec(
            ASKGRAPH, "ask", question, env=environment(home) | {"OPENAI_BASE_URL": server.base_url}, stderr=PIPE
        )
        while not server.requests and process.returncode is None:  # noqa: ASYNC110 - requests are no event
            await asyncio.sleep(0.05)
        process.send_signal(SIGINT)
        _, said = await process.communicate()
        assert process.returncode == 130, said.decode()
        assert servers.database_url
        async with await psycopg.AsyncConnection.connect(servers.database_url) as connection:
            cursor = await connection.execute("SELECT answer FROM runs WHERE question = %s", (question,))
            assert await cursor.fetchall() == [("",)]


def test_a_port_in_use_is_said_in_one_line(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run(home, "serve", "--port", str(port), code=1).stderr
    assert said.startswith(f"askgraph: Cannot listen on 127.0.0.1:{port}")
    assert "Traceback" not in said


def test_the_version_is_said(tmp_path: Path) -> None:
    assert run_installed(tmp_path, "--version").stdout.strip() == f"askgraph {version('askgraph')}"


def test_eval(home: Path) -> None:
    folder = home / "birds"
    library = folder / "files" / "shop"
    library.mkdir(parents=True)
    (library / "falke.md").write_text("# Falke\n\nThe Falke weather station has a warranty of 36 months.\n")
    question = {
        "id": "1",
        "library": "shop",
        "question": "How long is the warranty of the Falke weather station?",
        "must": [["36 months"]],
        "answerable": True,
        "source": "falke.md",
    }
    (folder / "queries.jsonl").write_text(json.dumps(question))
    figures = read(run(home, "eval", "birds", "--json", "--out", "figures"))
    assert figures.keys() == {"birds"}
    assert figures["birds"]["useful"] == 1
    assert "36 months" in (home / "figures" / "report.html").read_text("utf-8")

    (folder / "queries.jsonl").write_text(json.dumps({"id": "1"}))
    refused = run(home, "eval", "birds", code=2)
    assert refused.stderr == f"askgraph: {folder.relative_to(home)}/queries.jsonl, line 1: question: Field required.\n"


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
