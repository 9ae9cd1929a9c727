"""Measures how soon an uploaded document is found, by its words and by its meaning.

    python -m benchmarks.searchable [--chunks 50 500 2000]     # two or three minutes

Starts `askgraph serve` in an empty home and uploads Markdown files of growing length with `wait=false`. In each, a
sentence with a name stands in the last paragraph, and one that is asked for in other words in the first. Questions go
on until both are found. Prints, for each length:

accepted   seconds until the upload was taken
words      seconds from the beginning of the upload to the first answer that quotes the sentence with the name
said       of the answers until its meaning is indexed, how many say that it still is being indexed
meaning    seconds until no answer says so any more
asked      whether the question in other words, which shares none with the sentence, has it among its sources then
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.corpus import SEED, WORDS_PER_CHUNK, _language

NAMED = "The Quenneville-{n} protocol requires a torque wrench of size {size}."
ASKED_BY_NAME = "What does the Quenneville-{n} protocol require?"
MEANT = "Employees of branch {n} may bring their dogs to the office on Fridays."
ASKED_OTHERWISE = "On which weekday are pets permitted at work?"
INDEXING = "still being indexed"
DEADLINE = 600.0
PAUSE = 0.2


def write_document(chunks: int) -> bytes:
    """Return a Markdown file of about so many chunks, none of which occurs twice."""
    random = np.random.default_rng(SEED + chunks)
    words, weights = _language()
    paragraphs = [MEANT.format(n=chunks)]
    for number in range(chunks):
        said = " ".join(random.choice(words, WORDS_PER_CHUNK, p=weights))
        paragraphs.append(f"## Section {number}\n\n{said.capitalize()}.")
    paragraphs.append(f"## Tools\n\n{NAMED.format(n=chunks, size=chunks + 7)}")
    return ("# Manual\n\n" + "\n\n".join(paragraphs) + "\n").encode()


def wait_until_up(address: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            httpx2.get(f"{address}/healthz", timeout=5).raise_for_status()
        except httpx2.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("askgraph serve did not start; its log is above.")


def ask(client: httpx2.Client, workspace: str, question: str) -> dict[str, Any]:
    body = {"question": question, "mode": "fast", "workspace": workspace}
    response = client.post("/api/chat?stream=false", json=body)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


def is_among_sources(client: httpx2.Client, workspace: str, question: str, said: str) -> bool:
    thread = ask(client, workspace, question)["thread_id"]
    steps = client.get(f"/api/threads/{thread}/history?workspace={workspace}").json()["steps"]
    return any(said in source["text"] for step in steps for source in step["changed"].get("sources", ()))


def measure(client: httpx2.Client, chunks: int) -> str:
    workspace, meant = f"w{chunks}", MEANT.format(n=chunks)
    document = write_document(chunks)
    began = time.perf_counter()
    client.post(
        "/api/documents?wait=false", files={"files": ("manual.md", document)}, data={"workspace": workspace}
    ).raise_for_status()
    accepted = time.perf_counter() - began
    found: list[tuple[float, bool]] = []  # seconds, and whether the answer said that indexing goes on
    while time.perf_counter() - began < DEADLINE:
        answer = ask(client, workspace, ASKED_BY_NAME.format(n=chunks))
        if f"size {chunks + 7}" in answer["answer"]:
            is_indexing = any(INDEXING in warning for warning in answer["warnings"])
            found.append((time.perf_counter() - began, is_indexing))
            # Not the first that says nothing: the document may have come while it was written.
            if len(found) > 2 and not any(said for _, said in found[-2:]):
                break
        time.sleep(PAUSE)
    early = found[: max((i + 1 for i, (_, said) in enumerate(found) if said), default=0)]
    by_meaning = is_among_sources(client, workspace, ASKED_OTHERWISE, meant)
    return (
        f"{chunks:6,} chunks, {len(document) / 1e3:7,.0f} kB: accepted {accepted:5.2f} s, words {found[0][0]:5.2f} s, "
        f"said in {sum(said for _, said in early)} of {len(early)} answers meanwhile, "
        f"meaning {found[len(early)][0]:6.2f} s, asked in other words {'found' if by_meaning else 'NOT found'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[50, 500, 2000])
    lengths = parser.parse_args().chunks
    home = Path(tempfile.mkdtemp(prefix="askgraph-searchable-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"ASKGRAPH_HOME": str(home), "ASKGRAPH_LOAD_SAMPLES": "false"}
    with (home / "log").open("wb") as log:
        command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_up(address, process)
        with httpx2.Client(base_url=address, timeout=60) as client:
            measure(client, 5)  # the first upload starts the processes that read files
            for chunks in lengths:
                print(measure(client, chunks), flush=True)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
