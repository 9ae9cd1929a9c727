"""Commands, on the server that runs in their home."""

import asyncio
import json
import re
from asyncio.subprocess import PIPE
from importlib.metadata import version
from pathlib import Path
from signal import SIGINT

import psycopg
import pytest

from app.adapters.embedded import open_servers
from tests.cli.commands import ASKGRAPH, environment, read, run, run_installed
from tests.wire.openai import serve_openai


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
