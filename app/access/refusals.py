"""Records in the audit log who was refused: for a key or token that is not valid, or for want of a right."""

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from types import TracebackType
from typing import Self

from app.support.cancelling import end_tasks
from domain.errors import AskgraphError
from domain.people.audit import AuditEntry, AuditLog

logger = logging.getLogger("askgraph.access")

WRITE_SECONDS = 60.0
MOST_ENTRIES = 1_000
"""Entries of a minute. What comes from further addresses is counted as one."""


class RefusalLog:
    """Counts refusals, and writes one entry a minute for each address and reason: whoever tries many keys must not fill
    the database. Use it as a context manager: leaving it writes the rest."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._counts = Counter[AuditEntry]()
        self._writing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._keep_writing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._writing is not None
        await end_tasks(self._writing)
        await self.write()

    def note(self, entry: AuditEntry) -> None:
        """Count a refusal. Those with the same address, caller and reason are one entry."""
        if entry not in self._counts and len(self._counts) >= MOST_ENTRIES:
            entry = AuditEntry("others", "refused", (), entry.status)
        self._counts[entry] += 1

    async def write(self) -> None:
        """Write what was counted. What cannot be written is in the service's own log."""
        for entry in list(self._counts):
            count = self._counts[entry]
            counted = entry if count == 1 else replace(entry, targets=(*entry.targets, f"{count} times"))
            try:
                await self._log.add(counted)
            except AskgraphError as error:
                logger.error("The audit log misses an entry: %s %s", counted, error.message)
            # Not before: a write that is cut short is made again. More may have been counted meanwhile.
            self._counts -= Counter({entry: count})

    async def _keep_writing(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()
