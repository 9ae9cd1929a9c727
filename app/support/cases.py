"""Works through many cases a few at a time, keeps each result at once, and goes on where it stopped: what evaluations
and replays of many runs are made with."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from domain.errors import InputError

Case = TypeVar("Case")
Result = TypeVar("Result")


async def work_through(
    cases: Mapping[str, Case],
    work: Callable[[Case], Awaitable[Result]],
    *,
    known: Mapping[str, Result],
    keep: Callable[[Result], None],
    at_once: int,
    first_alone: bool = False,
    report: Callable[[int, int], None],
) -> dict[str, Result]:
    """Return the result of each case, in their order. Those that are `known` are not worked on again; `keep` is called
    with each new one at once, and `report` with how many are done, of how many. With `first_alone` the others wait for
    the first one. The first error ends all of them.
    """
    results = {key: known[key] for key in cases if key in known}
    waiting = iter([key for key in cases if key not in results])
    report(len(results), len(cases))

    async def take(most: int | None = None) -> None:
        for number, key in enumerate(waiting, 1):
            results[key] = result = await work(cases[key])
            keep(result)
            report(len(results), len(cases))
            if number == most:
                return

    if first_alone:
        await take(1)
    await work_side_by_side(take, at_once)
    return {key: results[key] for key in cases}


async def work_side_by_side(work: Callable[[], Coroutine[Any, Any, None]], workers: int) -> None:
    """Run `work` several times concurrently. Raises the first error, which cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


class Journal(Generic[Result]):
    """A file of JSON lines: first a digest of what the results depend on, then a result a line."""

    def __init__(self, file: Path, kind: TypeAdapter[Result], **depends_on: Any) -> None:
        """Raises `InputError` where the file is no journal, or one of other work."""
        self.file = file
        self._kind = kind
        decisive = json.dumps(depends_on, sort_keys=True, default=str)
        self._head = json.dumps({"journal": hashlib.sha256(decisive.encode()).hexdigest()[:16]})
        try:
            # Where the work was killed, the last line is cut, perhaps within a character.
            text = file.read_text("utf-8", errors="replace") if file.exists() else ""
            # Not `splitlines`: JSON may hold what Unicode calls a line separator.
            *lines, cut = text.split("\n")
            if text and lines[:1] != [self._head]:
                raise InputError(
                    f"{file} is no journal of this work: of another change, other documents, other models or another "
                    "version. Name a new file."
                )
            if not text:
                self._append(self._head)
            elif cut:
                self._append("")
        except OSError as error:
            raise InputError(f"{file} cannot be used as a journal: {error}.") from error

    def read(self) -> list[Result]:
        """Return the results so far."""
        if not self.file.exists():
            return []
        read = map(self._read, self.file.read_text("utf-8", errors="replace").split("\n")[1:])
        return [result for result in read if result is not None]

    def add(self, result: Result) -> None:
        """Append a result."""
        if not self.file.exists():
            self._append(self._head)
        self._append(self._kind.dump_json(result).decode())

    def _append(self, line: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _read(self, line: str) -> Result | None:
        try:
            return self._kind.validate_json(line)
        except ValidationError:
            return None  # a line that was cut off when the work was stopped
