"""A library that a place is synced into, by the real ingestion."""

from dataclasses import dataclass
from typing import Any

from app.ingest.pipeline import Ingestion
from app.ingest.syncing import sync
from app.wiring.services import Services
from domain.documents import DocumentReport
from domain.library.synced import SyncAction
from domain.ports.connectors import Connector, Content


@dataclass
class _Library:
    """May be cut off after some calls."""

    ingestion: Ingestion
    calls: int

    async def add(self, workspace_id: str, source: str, content: Content, moved_from: str | None) -> DocumentReport:
        self._count()
        return await self.ingestion.add(
            workspace_id, source, content.data, media_type=content.media_type, sidecar=content.metadata,
            groups=content.groups, moved_from=moved_from,
        )  # fmt: skip

    async def delete(self, workspace_id: str, document_id: str) -> None:
        self._count()
        await self.ingestion.delete(workspace_id, document_id)

    def _count(self) -> None:
        if not self.calls:
            raise KeyboardInterrupt
        self.calls -= 1


async def sync_into(
    services: Services, place: Connector, calls: int = 1000, **options: Any
) -> list[tuple[SyncAction, str]]:
    """Return what was done, by the path below the place."""
    said: list[tuple[SyncAction, str]] = []
    await sync(
        place,
        "default",
        services.library.synced,
        services.library.documents,
        services.library.parsers,
        _Library(services.library.ingestion, calls),
        report=lambda action, source, _: said.append((action, name_within(place, source))),
        **options,
    )
    return said


async def list_names(services: Services, place: Connector) -> list[str]:
    return [name_within(place, document.source) for document in await services.library.documents.list("default")]


def name_within(place: Connector, source: str) -> str:
    return source.removeprefix(place.address).lstrip("/")
