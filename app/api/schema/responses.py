"""The types of those responses of the API that are neither in `askgraph.models`, because its client reads them, nor
types of the domain."""

from datetime import datetime
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from app.history.steps import HistoryStep
from askgraph import models
from domain.documents import Unseen
from domain.library.browsing import Choice, Folder
from domain.people.access import Right
from domain.runs import CostKey, Spending
from domain.text.blocks import Kind


class FieldProblem(TypedDict):
    """A field of the request that is not valid."""

    field: str
    """The field, as `question` or `sets.0`."""
    problem: str
    """What is wrong with it."""


class ErrorDetail(TypedDict):
    """An error."""

    code: str
    message: str
    retryable: bool
    """True where asking again may help; `Retry-After` says when."""
    details: NotRequired[list[FieldProblem]]


class ErrorBody(TypedDict):
    """The body of every error response."""

    error: ErrorDetail
    """What is wrong."""


class UnseenBody(TypedDict):
    """The words of a file that its document's text leaves out because nobody sees them."""

    words: int
    """How many there are."""
    unseen: list[Unseen]
    """The first of them."""


class BlockBody(TypedDict):
    """A block of a document's text."""

    kind: Kind
    """What it is."""
    start: int
    end: int
    heading_path: list[str]
    page: int | None
    text: str
    """Its text."""


class BlocksBody(TypedDict):
    """A document's text in blocks."""

    document_id: str
    title: str
    characters: int
    blocks: list[BlockBody]


class FoundWordsBody(TypedDict):
    """A place of a document where words stand."""

    start: int
    end: int
    text: str
    """The words with what stands around them."""
    page: int | None
    boxes: list[models.Box]


class LibraryBody(TypedDict):
    """A page of the library, and what narrows it down."""

    all: int
    """Documents that the caller may read."""
    total: int
    """Those that are in the folder and below it, and fit the words and the filter."""
    folder: str
    """The folder that is shown: where a folder holds nothing but one other, that one."""
    folders: list[Folder]
    """Empty where words or a filter look for documents: those below the folder are listed then too."""
    choices: list[Choice]
    documents: list[models.Document]
    next: int | None
    """The `offset` of the documents that follow; null at the end."""


class IngestBody(TypedDict):
    """The reports of added files."""

    documents: list[models.DocumentReport]
    chunks: int
    """Chunks that were embedded."""
    failed: int
    """Files that were not taken."""
    passed_over: int
    """Files in folders that are of no supported type."""
    seconds: float
    """Seconds that it took."""


class AcceptedIngestBody(IngestBody):
    """The files that are read later, and reports of those that were refused."""

    ingestions: list[models.Ingestion]


class HistoryBody(TypedDict):
    """Saved steps of a thread, oldest first."""

    thread_id: str
    steps: list[HistoryStep]
    next: str | None
    """The `after` of the steps that follow; null at the end."""


class ModeBody(TypedDict):
    """A mode."""

    name: str
    """What to send as `mode`."""
    verifies: bool
    """True where every statement of an answer is checked."""
    dollars: float | None
    """The average cost of a question that was not answered from the cache; null where it is not known."""
    most_dollars: float | None
    """The budget of one question; null where it has none, or no language model is asked."""


class CostsBody(TypedDict):
    """Costs, and their total."""

    since: datetime
    by: CostKey
    """What the costs are added up by."""
    costs: list[Spending]
    total: Spending


class CallerBody(TypedDict):
    """The sender of a request."""

    name: str
    """`owner`, `key:` and the key's id, or `oidc:` and the person's id at the identity provider."""
    workspaces: list[str] | None
    """Null: all."""
    groups: list[str] | None
    """The groups whose documents the caller may read; null: all."""
    rights: list[Right]


class NewKeyBody(TypedDict):
    """A key that was just made."""

    key_id: str
    key: str
    """The secret, which is shown this once."""


class PrunedBody(TypedDict):
    """Numbers of what is too old to be kept."""

    conversations: int
    """Those that go as a whole."""
    steps: int
    """Answers whose steps go, at most: some may be those of these conversations."""


class RetentionBody(TypedDict):
    """How long conversations are kept after their last question, in days; null: for ever."""

    days: float | None
    """In workspaces that have no span of their own."""
    by_workspace: dict[str, float | None]
    """In workspaces that have one."""
    steps_days: float | None
    """For how long the steps of a question are kept."""
    fixed: list[Literal["days", "steps_days"]]
    """What the environment says, whatever is chosen: `days` stands for all conversations."""
    deletes: PrunedBody | None
    """After a choice: what is deleted for it within the hour."""


class CacheCountsBody(TypedDict):
    """Counts of a workspace's questions that found a cached answer and that did not."""

    workspace: str
    hits: int
    """Questions that a cached answer was found for."""
    misses: int
    """Questions that none was found for."""
    shared: int
    """0: each question is answered by a run of its own."""


class LiveBody(TypedDict):
    """The process is alive."""

    status: Literal["ok"]
    """Always `ok`."""


class BusyBody(TypedDict):
    """How many runs this process has."""

    running: int
    """Runs that are worked on."""
    waiting: int
    """Runs that wait for their turn."""
    most: int
    """Runs that it works on at once."""
    saturated: bool
    """True where a further run would wait."""


class HealthBody(TypedDict):
    """The health of the service and of each part."""

    status: Literal["ok", "degraded", "down"]
    """`down`: no question can be answered; `degraded`: a part does not work."""
    database: Literal["up", "down"]
    """Whether PostgreSQL works."""
    cache: Literal["up", "down"]
    """Whether Redis works."""
    models: str
    """`ok`, `none` where no language model is set up, or what is wrong."""
    answering: dict[str, str]
    """By language model that answers, `ok` or what is wrong; empty without the right `debug`."""
    embeddings: str
    """`ok`, or what is wrong."""
    rerank: str
    """`ok`, or what is wrong."""
    originals: str
    """Where the files are kept: `ok`, or what is wrong."""
    problem: str | None
    """Why no question can be answered; null where they can be."""
    ms: dict[str, float]
    runs: BusyBody
    parts: dict[str, str]
    """Empty without the right `debug`."""
    modes: list[str]
    """The names of the modes."""
    keys_from: str
    """Who gives keys, in the operator's words; empty: nothing is said of it."""
    sign_in: bool
    """True where people can sign in at an identity provider."""
