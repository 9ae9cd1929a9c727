"""Places outside that documents come from: a folder, a website, a bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from domain.library.metadata import Metadata


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or page that a place has."""

    source: str
    """Its path or address, which becomes its document's source."""
    version: str | None
    """Stays the same as long as the content does; None where only reading tells."""
    mount: str | None = None
    """The mounted folder that it is in; None where the place has none."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a place has."""

    entries: Sequence[Entry]
    passed_over: int = 0
    """Files that are of no supported format or, of a website, not for programs to read."""
    gap: str | None = None
    """Why this may not be everything; None where it is. What a listing with a gap leaves out is not taken as gone."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """The parts that could not be read, such as folders, by path or address, and why: what is below them is not taken
    as gone."""
    mounts: Sequence[str] = ()
    """The folders in it that are mounted now."""
    links: Sequence[str] = ()
    """Links to folders, which are not followed."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was read of an entry."""

    data: bytes
    version: str = ""
    """Stands in for a version that the entry does not have."""
    media_type: str | None = None
    metadata: Metadata = field(default_factory=dict)
    groups: Sequence[str] | None = None
    """Who may read a new document; None: as the library decides."""


class Connector(Protocol):
    """A place that a workspace is kept in step with."""

    address: str
    """Names the place, without any secret."""

    async def list(self) -> Listing:
        """Return what the place has now. Raises `InputError` where there is no such place; `ConfigurationError` where
        it refuses our key; `Unavailable`."""

    async def read(self, entry: Entry, known: str | None) -> Content | None:
        """Return the content; None where it still has the version `known`.

        Raises `NotFound` where it is gone, `DocumentError` and `MetadataError` where it cannot be read, and
        `Unavailable` where the rest cannot be read either.
        """


@dataclass(frozen=True, slots=True)
class Opening:
    """What every connector is opened with."""

    login: tuple[str, str] | None = None
    """User and password, where the place asks for them by HTTP."""
    max_bytes: int = 50_000_000
    """Limit of one file or page."""
    max_pages: int = 1000
    """Limit of the pages of a website."""
