"""Looking through a library: a page of its documents, and what narrows the list down."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from domain.documents import Document
from domain.library.where import Scalar

Order = Literal["name", "newest", "largest"]


@dataclass(frozen=True, slots=True)
class View:
    """What somebody wants to see of the documents in their scope."""

    words: str = ""
    """Each of them has to stand in a document's title or source."""
    folder: str = ""
    """What the sources begin with: nothing, or a path with the slash at its end."""
    order: Order = "name"
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of sources."""

    path: str
    """The folder, from the outermost on: where one holds nothing but another, that one."""
    documents: int
    """Also in the folders within it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a metadata key by which the documents can be narrowed down."""

    key: str
    """The key."""
    value: Scalar
    """One of its values."""
    documents: int
    """Documents that have it."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """A page of documents. Those in the folders within a folder are listed only where words or a filter look for
    them; `folders` is empty then."""

    all: int
    """Documents that the asker may read, whatever they look for."""
    total: int
    """Documents that are in the folder and below it, and have the words, and pass the filter."""
    folder: str
    """The folder that is shown: where a folder holds nothing but one other, that one."""
    folders: Sequence[Folder]
    choices: Sequence[Choice]
    documents: Sequence[Document]
