"""The TOML file that says which column of the table holds what."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError

WHOLE = "default"
"""The workspace that all rows belong to if the mapping names no column for it."""

Name = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^%\x00]+$")]


class TableMapping(BaseModel):
    """Names of the table's columns. The defaults are those of `PGVectorStore` and of LangChain's loaders and splitters.

    Fields from `workspace` on name a column or, if there is none of this name, a key of the metadata. They may be
    missing from any row.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    table: Name
    schema_name: Name = Field("public", alias="schema")
    id: Name = "langchain_id"
    content: Name = "content"
    embedding: Name = "embedding"
    metadata: Name = "langchain_metadata"
    words: Name | None = None
    """The `tsvector` column of its hybrid search; without it, search uses embeddings alone."""
    language: Name = "english"
    """The text search configuration that filled that column."""

    workspace: Name | None = None
    """The workspace of a row. Without it, all rows belong to the workspace `default`."""
    document: Name = "source"
    title: Name = "title"
    headings: tuple[Name, ...] = ()
    """Outermost heading first, for example `["Header 1", "Header 2"]`."""
    page: Name = "page"
    first_page: int = Field(1, ge=0, le=1)
    """Number of the first page: LangChain's PDF loaders count from 0."""
    start: Name = "start_index"
    position: Name | None = None
    """The chunk's number in its document; with it, cut sentences are completed from the chunks beside it."""


def read_mapping(path: Path) -> TableMapping:
    """Read the TOML file that `ASKGRAPH_PGVECTORSTORE` names.

    Raises `ConfigurationError`.
    """
    try:
        return TableMapping.model_validate(read_toml(path, "file"))
    except ValidationError as error:
        raise ConfigurationError(f"The file {path} cannot be used: {list_problems(error)}.") from error
