"""What the server answers: the shapes of its API, described nowhere else. Fields that a newer server adds are kept."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """The base of all answers."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())


class Box(Model):
    """A rectangle on a page, in percent (0-100) of its width and height, origin top left."""

    page: int | None = None
    """Counts from 1."""
    x: float
    """The left side."""
    y: float
    """The upper side."""
    width: float
    """From left to right."""
    height: float
    """From top to bottom."""


class Place(Model):
    """A place in a document. `start` and `end` count characters of the document's text."""

    page: int | None
    heading_path: list[str]
    start: int
    end: int
    text: str
    """The text of the place."""


class Source(Place):
    """A place that an answer was written from."""

    marker: int
    """The number in the answer, as in `[1]`."""
    document_id: str
    title: str
    source: str = ""
    """The document's path as ingested, or its address."""
    revision: int | None = None
    """Never used again for this document, also where it is deleted and comes back."""
    since: Literal["changed", "deleted"] | None = None
    """What became of the document since, in answers that are read later; None while it holds what is cited."""
    boxes: list[Box] = []
    """Where `text` stands, a box a line; empty where the document has no pages."""
    score: float


class CitedPassage(Place):
    """What one marker in the answer rests on: a part of what its source is cited for."""

    boxes: list[Box] = []


class OutsideCall(Model):
    """The call of a function of an MCP server, of which a citation shows the result."""

    server: str
    """The name that the deployment gave it."""
    function: str
    """Its name on that server."""
    arguments: str
    """In JSON."""
    called_at: str
    """In ISO 8601, UTC."""


class Citation(Source):
    """The place in a document that supports a statement."""

    chunk_id: str
    chunk_index: int
    """Counts the passages of the document from 0."""
    passages: list[CitedPassage] = []
    """What each of its markers rests on, in their order in the answer; empty where that is the same."""
    updated_at: str | None = None
    content_hash: str | None = None
    """SHA-256, in hex, of the file that is cited."""
    outside: OutsideCall | None = None
    """Set where `text` came from a function and not from a document; `document_id` is empty then."""


class Claim(Model):
    """A statement of the answer, and whether its sources support it."""

    text: str
    """The statement as it stands in the answer."""
    start: int
    """First character, counted from 0, in the answer before any correction."""
    end: int
    """Character of that answer after the last one."""
    markers: list[int]
    kind: str
    """`statement`, `conclusion`, or `absence`: that the sources do not say something."""
    sources: list[int]
    """Numbers of the sources that support it."""
    verdict: str
    """`supported` or `unsupported`."""
    reason: str
    score: float


class Verification(Model):
    """The verdicts on the claims; `status` is `skipped` where the mode does not verify."""

    status: str
    """`supported`, `quoted` where it is passages that no model judged, `unsupported`, `reconciled` where what did not
    hold was taken out, or `skipped`."""
    claims: list[Claim]
    score: float | None = None


class Usage(Model):
    """The tokens and costs of one call of a language model."""

    node: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    estimated: bool
    """True where the call was given up, so that tokens and price are an estimate."""
    cached_tokens: int = 0
    """Tokens among those read that the provider knew from an earlier request."""


class Comparison(Model):
    """The result of comparing a strict replay with the recorded run."""

    run_id: str
    identical: bool
    """True where events and final state equal the recorded ones, times apart."""
    differences: list[str]
    """The lines of a unified diff."""


class Answer(Model):
    """A whole answer and how it came about."""

    run_id: str
    thread_id: str
    """Pass it on to go on in this conversation."""
    answer: str
    citations: list[Citation]
    """The sources that the answer cites."""
    sources: list[Citation] = []
    """The sources that the answer was written from."""
    outcome: str | None
    """`answered`, `answered_with_caveat`, `showed_passages`, `abstained`, `asked_back`, `declined` or `conversed`; None
    where the run was stopped before it had one."""
    abstained: bool
    """True where the documents do not answer."""
    outcome_reasons: list[dict[str, Any]]
    """Objects with a `code` and its details."""
    framing: dict[str, int]
    route: str
    mode: str
    standalone_question: str
    confidence: float
    verification: Verification
    cached: bool
    stopped: bool
    usage: list[Usage]
    cost: float | None
    """US dollars; None where a model's price is unknown."""
    timings: dict[str, float]
    """Milliseconds by node, and `total`."""
    warnings: list[str]
    answered_by: str
    degraded: list[dict[str, Any]]
    prompts: dict[str, str]
    trace_url: str | None
    """Where LangSmith shows the run; None where it is not traced."""
    comparison: Comparison | None = None


class Passage(Place):
    """A passage that a search found."""

    document_id: str
    title: str
    source: str
    score: float
    """Comparable within one search only."""


class Unread(Model):
    """What of a file is not in its document's text."""

    kind: str
    """Such as `chart`, `comment` or `hidden word`."""
    number: int
    """How many there are."""
    where: str


class Document(Model):
    """A document of the library."""

    id: str
    """Its id."""
    workspace_id: str
    source: str
    title: str
    media_type: str
    """The kind of file, as `application/pdf`."""
    content_hash: str
    pages: int | None
    characters: int
    chunks: int
    """Passages that a search can find."""
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any]
    """What is known of it, as `team` or `year`."""
    unread: list[Unread] = []
    revision: int
    revised_at: datetime | None
    to_embed: int
    """Chunks that are still to be embedded; until then only their words find them."""
    groups: list[str] | None
    text: str | None = None
    """The extracted text, where a single document was asked for."""


class DocumentReport(Model):
    """What became of a file."""

    source: str
    status: str
    """`added`, `updated`, `unchanged`, `superseded`, `failed` or `cancelled`."""
    document_id: str | None
    title: str | None
    pages: int | None
    chunks: int
    embedded: int
    error: str | None
    """The problem and its remedy, where the file failed."""
    code: str | None
    note: str | None
    unread: list[Unread] = []


class Progress(Model):
    """How far the reading of a file has come: of `total` pages or chunks, `done`."""

    stage: str
    """What is done now, as `reading` or `embedding`."""
    done: int
    """Pages or passages that are done."""
    total: int | None
    """All of them; None where that is not known."""


class Ingestion(Model):
    """A file that was sent, and how far it has been read."""

    ingestion_id: str | None
    """None where the file was refused at once, as are the other fields without a value then."""
    workspace: str | None = None
    source: str
    state: str
    """`queued`, `running`, `done`, `superseded`, `failed` or `cancelled`."""
    accepted_at: datetime | None = None
    ended_at: datetime | None = None
    report: DocumentReport | None
    """What became of the file, once it has been read."""
    progress: Progress | None = None

    @property
    def is_ended(self) -> bool:
        """Return True once nothing is left to do: the file is read and embedded, or never will be."""
        return self.report is not None and (
            self.state != "done" or self.progress is None or self.progress.stage == "done"
        )


class Feedback(Model):
    """What a reader says of an answer."""

    rating: Literal["up", "down"]
    """Whether the answer helped."""
    reason: str | None
    """What is wrong with it; None where nothing was said."""
    comment: str
    given_at: datetime
    """When it was given."""


class Run(Model):
    """A run's status."""

    run_id: str
    thread_id: str
    workspace: str
    question: str
    mode: str
    state: str
    """`queued`, `running`, `done`, `failed` or `stopped`."""
    attempt: int
    accepted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stop_requested: bool
    """True where somebody wants it to stop."""
    forked_from: dict[str, Any] | None
    """The run and the saved state that it went on from; None for a question."""
    ended: dict[str, Any] | None
    """The data of the last event, and its name as `event`."""


class RunSummary(Model):
    """A run that has ended, as a list shows it."""

    run_id: str
    thread_id: str
    started_at: datetime
    question: str
    mode: str
    route: str
    outcome: str | None
    confidence: float
    top_score: float | None
    """The score of the best passage; None where none was found."""
    retries: int
    candidates: int
    """Number of passages that the searches found."""
    sources: int
    """Number of sources that the answer was written from."""
    citations: int
    verification: str
    """Whether the claims are supported; `skipped` where none was checked."""
    cached: bool
    answered_by: str
    cost: float | None
    ms: float | None
    warnings: int
    degraded: int
    """Number of its fallbacks."""
    outdated: int
    """Number of the cited documents that were replaced or deleted since."""
    error: str | None
    replay: bool
    reasons: list[str]
    rating: str | None
    complaint: str | None
    comment: str
    asked_by: str
    models: list[str]
    documents: list[str]
    """The titles of the cited documents."""


class ChosenModels(Model):
    """Language models that an assistant names; None: its mode's."""

    small: str | None = None
    """Routes, and makes small talk."""
    large: str | None = None
    """Writes answers."""
    judge: str | None = None
    """Verifies them."""


class Assistant(Model):
    """A version of an assistant: a mode that a team has made for itself."""

    assistant_id: str
    version: int
    name: str
    """What questions name as their mode."""
    description: str
    """What it is for."""
    mode: str
    """What it was made of."""
    instructions: str | None
    """For the language model that writes."""
    document_ids: list[str] | None
    """It answers from these only; None: from all."""
    filter: dict[str, Any] | None
    """It answers only from documents whose metadata fits; None: from all."""
    length: Literal["brief", "detailed"] | None
    """None, here and below: as the mode says."""
    language: str | None
    """Of small talk, abstentions and caveats."""
    models: ChosenModels | None
    metadata: dict[str, Any]
    """Notes of clients."""
    groups: list[str] = []
    """Only callers of one of these groups read, use and change it; none: everybody in the workspace."""
    created_by: str
    """Who made this version."""
    created_at: datetime
    """When the first version was made."""
    updated_at: datetime
    """When this version was made."""


class Page(Model):
    """A page of a list."""

    next: str | None
    """The `after` of the next page; None on the last one."""


class RunList(Page):
    """Runs that have ended, newest first."""

    since: datetime
    runs: list[RunSummary]


class SetQuestion(Model):
    """A question of a set."""

    id: str
    """The run that it was made of."""
    question: str
    answers: list[str]
    """A right answer holds one of these."""
    answerable: bool
    """False where the right behaviour is to abstain."""


class SetRun(Model):
    """What came of asking a set."""

    ran_at: datetime
    """When the last question was answered."""
    mode: str
    version: str
    """Of askgraph, with the first digits of what identifies its code and models."""
    asked: int
    """Number of its questions then."""
    right: int
    """Number of those that came out as they should."""
    wrong: dict[str, str]
    """What went wrong with each of the others, by the question's id."""


class QuestionSet(Model):
    """A set of questions that a workspace keeps."""

    name: str
    """Unlike those of the workspace's other sets."""
    questions: list[SetQuestion]
    """As they were added."""
    runs: list[SetRun]
    """What came of asking it, the latest first."""


class Fact(Model):
    """One decisive fact of a run."""

    about: str
    """What it is about, as `searched` or `confidence`."""
    text: str
    """What was decided."""


class ThreadSummary(Model):
    """A conversation, as a list shows it."""

    thread_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    turns: int
    """Number of its questions."""
    running: str | None
    """The id of the run that is answering; None where none is."""
    outdated: bool = False
    """True where an answer cites a document that was replaced or deleted since."""


class ThreadList(Page):
    """Conversations, the latest first."""

    threads: list[ThreadSummary]


class StepTime(Model):
    """One execution of a step."""

    node: str
    ms: float


class Withdrawal(Model):
    """Text that was shown before the answer, and replaced."""

    reason: str
    withdrawn: str


class ToolUse(Model):
    """A call of a tool by the research agent."""

    round: int
    """Calls of one round were made at once."""
    call_id: str
    """The id that the model gave the call."""
    name: str
    """The tool."""
    arguments: dict[str, Any]
    """What the model gave it."""
    text: str
    """What the tool said, cut where it is long."""
    sources: int | None
    """Number of the sources that it brought; None where it has not run to its end."""


class Turn(Model):
    """A question of a conversation and what came of it."""

    run_id: str
    question: str
    mode: str
    document_ids: list[str] | None
    """The documents that the question was limited to; None: all."""
    filter: dict[str, Any] | None = None
    """The filter of documents' metadata that it was limited by; None: none."""
    state: str
    """`queued`, `running`, `done`, `failed` or `stopped`."""
    accepted_at: datetime
    ended: dict[str, Any] | None
    """The data of the last event, and its name as `event`."""
    sources: list[Source]
    """Those that the answer does not cite. The others are the citations in `ended`."""
    steps: list[StepTime]
    corrections: list[Withdrawal]
    tools: list[ToolUse]
    """What the research agent looked up."""
    feedback: Feedback | None


class Thread(Model):
    """A conversation with its last turns, oldest first."""

    thread_id: str
    title: str
    turns: list[Turn]
    next: str | None
    """The `before` of the turns that precede these; None at the beginning."""


class Erasure(Model):
    """The proof that something was erased: `found` is empty where nothing is left."""

    ids: list[str]
    """Ids and names that were erased and searched for."""
    sentences: int
    """Number of sentences that were searched for."""
    erased: dict[str, int]
    """Rows that were deleted or changed, by table."""
    searched: int
    found: dict[str, int]
    """Rows by table, and files of the home by folder, that still hold it."""
    remarks: list[str] = []
    """What could not be searched, and how long it holds what was erased."""
