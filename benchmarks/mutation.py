"""Mutation testing of what computes: does a test fail for every change of the code?

mutmut makes the mutants; this runs them. mutmut's own runner imports the service and its tests anew for each mutant and
has no model in memory, which makes it thirty times slower here. Tests that need a server take part with `--servers`.

Run it with `make mutants`; docs/measurements.md has the figures.
"""

import argparse
import fnmatch
import io
import json
import os
import random
import shutil
import signal
import sys
import time
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = ROOT / "mutants"
SLOW = 10.0
"""Seconds of a test beyond which it takes no part: every survivor would wait for it."""
SERVED = 40
"""Tests with servers that a mutant has to pass, the quickest first; each process starts servers of its own."""


def generate() -> None:
    """Write the mutants of every file that changed."""
    from mutmut import __main__ as mutmut
    from mutmut.mutation.trampoline import set_mutant_under_test
    from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir

    set_mutant_under_test("mutant_generation")
    os.chdir(ROOT)
    MUTANTS.mkdir(exist_ok=True)
    shutil.rmtree(MUTANTS / "tests", ignore_errors=True)
    copy_src_dir()
    copy_also_copy_files()
    mutmut.create_mutants(2)


def list_mutants(patterns: Iterable[str]) -> list[str]:
    """Return the names of the mutants that a pattern matches."""
    names: list[str] = []
    for file in sorted(MUTANTS.rglob("*.py.meta")):
        names += json.loads(file.read_text())["exit_code_by_key"]
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


class Runner:
    """A pytest plugin that runs, instead of the tests, every mutant with the tests that reach it."""

    def __init__(self, patterns: list[str], sample: int, *, servers: bool, at_once: int) -> None:
        self.names = list_mutants(patterns)
        if 0 < sample < len(self.names):
            self.names = sorted(random.Random(10).sample(self.names, sample))
        self.servers, self.at_once = servers, at_once
        self.results: dict[str, str] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        print(f"{len(session.items)} tests, {len(self.names)} mutants", file=sys.__stderr__, flush=True)
        from _pytest.runner import runtestprotocol

        self.run = runtestprotocol
        items = [item for item in session.items if self.servers or not _is_served(item)]
        reached, seconds = self._trace(items)
        by_function: dict[str, list[Any]] = defaultdict(list)
        for item in sorted(items, key=lambda item: (_is_served(item), seconds.get(item.nodeid, 0.0))):
            if seconds.get(item.nodeid, SLOW) < SLOW:
                for function in reached[item.nodeid]:
                    if not _is_served(item) or sum(map(_is_served, by_function[function])) < SERVED:
                        by_function[function].append(item)
        children: dict[int, str] = {}
        started = time.time()
        for number, name in enumerate(self.names, 1):
            if not (chosen := by_function[name.rpartition("__mutmut_")[0]]):
                self.results[name] = "not reached"
                continue
            while len(children) >= self.at_once:
                self._reap(children)
            limit = min(30, 5 + 3 * sum(seconds[item.nodeid] for item in chosen))
            if any(map(_is_served, chosen)):
                limit += 120
            children[self._fork(name, chosen, int(limit))] = name
            if number % 100 == 0:
                print(f"{number}/{len(self.names)} {time.time() - started:.0f} s", file=sys.__stderr__, flush=True)
        while children:
            self._reap(children)
        return True

    def _trace(self, items: list[Any]) -> tuple[dict[str, list[str]], dict[str, float]]:
        """Run every test in a child and return the functions that it reaches, and its seconds. A test that fails
        unmutated reaches none."""
        from mutmut.mutation import trampoline

        read, write = os.pipe()
        if not (child := os.fork()):
            reached: dict[str, list[str]] = {}
            seconds: dict[str, float] = {}
            hits: set[str] = set()
            # The trampoline imports the function by name, so its own name for it is what has to change.
            trampoline.record_trampoline_hit = lambda name, caller=None: hits.add(name)  # type: ignore[attr-defined]
            os.environ["MUTANT_UNDER_TEST"] = "stats"
            for item, following in zip(items, [*items[1:], None], strict=True):
                hits.clear()
                started = time.perf_counter()
                reports = self.run(item, nextitem=following, log=False)
                seconds[item.nodeid] = time.perf_counter() - started
                if failed := [report for report in reports if report.failed]:
                    print(f"fails unmutated: {item.nodeid}\n{failed[0].longrepr}"[:1500], file=sys.__stderr__)
                reached[item.nodeid] = [] if failed else sorted(hits)
            with os.fdopen(write, "w") as pipe:
                json.dump([reached, seconds], pipe)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            traced = json.load(pipe)
        os.waitpid(child, 0)
        return traced[0], traced[1]

    def _fork(self, name: str, items: list[Any], limit: int) -> int:
        if child := os.fork():
            return child
        os.environ["MUTANT_UNDER_TEST"] = name
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10 * limit)
        # Seconds of computing, so that a busy machine kills no mutant.
        signal.setitimer(signal.ITIMER_PROF, limit)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                if any(report.failed for report in self.run(item, nextitem=following, log=False)):
                    os._exit(1)
        except BaseException:  # noqa: BLE001 - pytest itself fell over what the mutant raised
            os._exit(1)
        os._exit(0)

    def _reap(self, children: dict[int, str]) -> None:
        child, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        name = children.pop(child)
        ends = {0: "survived", -signal.SIGALRM: "timeout", -signal.SIGPROF: "timeout"}
        self.results[name] = ends.get(code, "killed")
        if code == 0:
            print(f"survived: {name}", file=sys.__stderr__, flush=True)


def _is_served(item: Any) -> bool:
    return "servers" in item.fixturenames


def keep_the_model() -> None:
    """Read the embedding model once, for all children. A thread of its own would not survive the fork."""
    from app.adapters.embeddings import onnx

    opened = cache(onnx._open_session)
    onnx._open_session = lambda weights, threads: opened(weights, 1)
    onnx.OnnxEmbedder.load(threads=1).close()


def show(name: str) -> list[str]:
    """Return the lines that a mutant takes away and puts in."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    return [line for line in get_diff_for_mutant(name).splitlines()[2:] if line[:1] in "+-"]


def changes_only_prose(diff: list[str]) -> bool:
    """Return True where the mutant changes nothing but a text with a blank in it: what people read."""
    sides: list[list[str]] = []
    for sign in "-+":
        source = "\n".join(line[1:].strip() for line in diff if line[0] == sign)
        try:
            sides.append([token.string for token in tokenize.generate_tokens(io.StringIO(source).readline)])
        except (tokenize.TokenError, IndentationError, SyntaxError):
            return False
    if len(sides[0]) != len(sides[1]):
        return False
    changed = [(old, new) for old, new in zip(*sides, strict=True) if old != new]
    return all(old[:1] in "\"'" and old.count(" ") > 1 for old, _ in changed)


def main() -> None:
    """Run the mutants that the patterns name, and print the survivors and a table by file."""
    import pytest
    from hypothesis import Phase, settings

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of mutants, such as 'domain.text.*'")
    parser.add_argument(
        "--tests",
        nargs="+",
        default=["tests/domain", "tests/graphs", "tests/nodes", "tests/answering", "tests/history", "tests/workbench"],
    )
    parser.add_argument("--sample", type=int, default=0, help="so many mutants at random; 0: all")
    parser.add_argument("--as-they-are", action="store_true", help="run the mutants that were made before")
    parser.add_argument("--model", action="store_true", help="the tests need the embedding model")
    parser.add_argument("--servers", action="store_true", help="with the tests that start servers; implies --model")
    parser.add_argument("--at-once", type=int, default=2, help="processes")
    options = parser.parse_args()
    # One example that fails is enough; the smallest one takes long to find.
    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], deadline=None, derandomize=True)
    settings.load_profile("mutants")
    if not options.as_they_are:
        generate()
    os.chdir(MUTANTS)
    sys.path[:] = [str(MUTANTS), *(path for path in sys.path if path not in ("", str(ROOT)))]
    os.environ["MUTANT_UNDER_TEST"] = ""
    options.model |= options.servers
    if options.model:
        keep_the_model()
    runner = Runner(options.patterns, options.sample, servers=options.servers, at_once=options.at_once)
    plain = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0"]
    plain += ["-W", "ignore::pytest.PytestAssertRewriteWarning", *([] if options.model else ["--noconftest"])]
    pytest.main([*options.tests, *plain], plugins=[runner])
    os.chdir(ROOT)
    report(runner.results)


def report(results: dict[str, str]) -> None:
    """Print each survivor and a table by file."""
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    for name, result in sorted(results.items()):
        if result in ("survived", "not reached"):
            diff = show(name)
            if changes_only_prose(diff):
                result = "prose"
            print(f"\n{result}: {name}", *diff, sep="\n")
        by_file[name.rpartition(".")[0]][result] += 1
    kinds = ["killed", "timeout", "survived", "not reached", "prose"]
    print("\n| file | mutants |", " | ".join(kinds), "| killed of those not prose |\n|---" + "|---" * 7 + "|")
    total = sum(by_file.values(), Counter[str]())
    for file, counts in [*sorted(by_file.items()), ("all", total)]:
        dead, counted = counts["killed"] + counts["timeout"], counts.total() - counts["prose"]
        cells = [str(counts[kind]) for kind in kinds]
        print(f"| {file} | {counts.total()} |", " | ".join(cells), f"| {dead / max(1, counted):.0%} |")


if __name__ == "__main__":
    main()
