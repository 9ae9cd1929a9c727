"""Questions to begin with: a new document answers them, and this service, surely, from the same place."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from itertools import islice

from app.answering.locally import answer_locally
from app.modes import find_mode
from domain.documents import Document
from domain.library.browsing import View
from domain.library.where import Where
from domain.ports.documents import DocumentStore
from domain.profile import Profile
from domain.scope import Scope
from domain.text.starters import LONGEST_READ, Starter, make_starters
from nodes.context import Context

MOST = 3
"""Questions that are proposed at most."""
_READ = 8
"""Documents that are read, the newest. Chosen: of some nothing can be asked."""
_TRIES = 4
"""Questions of a document that are tried. Chosen: each takes as long as an answer without a model."""
_REMEMBERED = 256

_ANYWHERE = Where.parse('path >= ""')

Work = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class Starters:
    """Finds questions to begin with, and keeps them for those who may read the same until their library changes."""

    documents: DocumentStore
    modes: Mapping[str, Profile]
    _known: dict[Scope, tuple[str, list[str]]] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self, scope: Scope, work: Work, make_context: Callable[[], Context]) -> list[str]:
        """Return questions, each of another document, at most `MOST`. `work` lets the search wait for its turn.

        Raises `DatabaseUnavailable`, and what `work` raises.
        """
        fingerprint = await self.documents.corpus_fingerprint(scope)
        if self._known.get(scope, ("",))[0] != fingerprint:
            found: list[str] = []
            async with self._turn, work():
                if self._known.get(scope, ("",))[0] == fingerprint:
                    # Another request has found them meanwhile.
                    return self._known[scope][1]
                # Folders are no bounds to what is filtered.
                newest = await self.documents.browse(replace(scope, where=_ANYWHERE), View(order="newest", limit=_READ))
                for document in newest.documents:
                    if len(found) < MOST and document.characters <= LONGEST_READ:
                        found += await self._find_of(document, scope, found, make_context)
                self._known.pop(scope, None)
                self._known[scope] = fingerprint, found
                if len(self._known) > _REMEMBERED:
                    del self._known[next(iter(self._known))]
        return self._known[scope][1]

    async def _find_of(
        self, document: Document, scope: Scope, others: Sequence[str], make_context: Callable[[], Context]
    ) -> list[str]:
        """Return the first question of a document that is answered, rather one that begins otherwise than the others;
        none where none of the first few is."""
        text = await self.documents.get_text(scope.workspace_id, document.id) or ""
        starters = await asyncio.to_thread(lambda: list(islice(make_starters(text), _TRIES)))
        openings = {tuple(other.split()[:2]) for other in others}
        for starter in sorted(starters, key=lambda each: tuple(each.question.split()[:2]) in openings):
            if await self._is_answered(starter, document, scope, make_context()):
                return [starter.question]
        return []

    async def _is_answered(self, starter: Starter, document: Document, scope: Scope, context: Context) -> bool:
        """Ask it without a language model, which would cost something."""
        state = await answer_locally(starter.question, scope, find_mode(self.modes, "standard"), context)
        first, last = starter.answer
        return (
            state["outcome"] == "answered"
            and state["level"] == "high"
            and any(
                each["document_id"] == document.id and each["start"] < last and first < each["end"]
                for each in state["citations"][:1]
            )
        )
