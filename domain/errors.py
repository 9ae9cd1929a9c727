"""The exceptions that askgraph raises on purpose.

A class's docstring is its default message, so every error says something useful to a user even when raised
bare. `code` is the stable name that the API and the event stream carry. Adapters translate their driver's
errors into these at the edge; `app/api/perimeter/errors.py` alone maps them to HTTP.
"""

import re

from domain.people.limits import Used


class AskgraphError(Exception):
    """Something went wrong inside askgraph."""

    retryable: bool = False

    def __init__(self, message: str | None = None) -> None:
        self.message = message or " ".join((self.__doc__ or type(self).__name__).split())
        super().__init__(self.message)

    @property
    def code(self) -> str:
        """Return the class name in snake case, for example ``unknown_document``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()


# Asking again unchanged is useless.
class InputError(AskgraphError):
    """The request is not valid."""


class QuestionError(InputError):
    """The question is empty, too long, or not text."""


class UnknownMode(InputError):
    """There is no mode of this name."""


class AssistantError(InputError):
    """The assistant cannot be made like this."""


class NameTaken(AssistantError):
    """Another assistant of this workspace, or a mode, has this name."""


class FilterError(InputError):
    """The filter cannot be used."""


class MetadataError(InputError):
    """The metadata cannot be stored."""


class StateError(InputError):
    """The state cannot be changed like this."""


class CalculationError(InputError):
    """The calculation cannot be done."""


class FunctionError(AskgraphError):
    """The function of the MCP server cannot be called."""


class NotOnTape(InputError):
    """The tape does not hold this request."""


class DocumentError(InputError):
    """The file cannot become a document."""


class UnreadableDocument(DocumentError):
    """The file is damaged or cannot be read."""


class AmbiguousName(DocumentError):
    """Several documents have this name. Say with groups which one is meant, or delete one."""


class RestrictedText(DocumentError):
    """Much of the text is of documents that no group may read all of. Add the file with the groups that may read it."""


class EncryptedDocument(DocumentError):
    """The file is protected by a password. Remove the password and try again."""


class EmptyDocument(DocumentError):
    """The file holds no text."""


class ScannedDocument(DocumentError):
    """The pages are pictures without a text layer. Text recognition (OCR) reads them: pip install "askgraph[ocr]"."""


class OversizedDocument(DocumentError):
    """The file is larger than the limit."""


class StorageFull(DocumentError):
    """The workspace, or your key, holds as much as it may. Delete some documents first."""


class CostlyDocument(DocumentError):
    """Reading the file takes more time or memory than a file gets."""


class MistypedDocument(DocumentError):
    """The file's content is not what its name says."""


class UnsupportedDocument(DocumentError):
    """Files of this format are not supported."""


class Unauthenticated(AskgraphError):
    """This service needs a key: send it as `Authorization: Bearer KEY`, or sign in on the page."""


class SignInFailed(Unauthenticated):
    """This sign-in was begun in another browser, or too long ago. Sign in again."""


class Forbidden(AskgraphError):
    """Your key does not have the right to do this."""


class OverLimit(AskgraphError):
    """You have used up what you may use for now."""

    retryable = True

    def __init__(self, message: str | None = None, *, again_in: int = 5, used: Used | None = None) -> None:
        super().__init__(message)
        self.again_in = again_in
        """Seconds after which to try again."""
        self.used = used
        """What the caller had used when this was refused; None if that is not known."""


class RateLimited(OverLimit):
    """You have sent as many requests as you may send in a minute."""


class TooManyRuns(OverLimit):
    """Too many of your questions are being answered at once. Wait for one of them."""


class BudgetSpent(OverLimit):
    """Your questions have used what they may use in a day."""


class NotFound(AskgraphError):
    """There is no such thing."""


class UnknownWorkspace(NotFound):
    """There is no such workspace."""


class UnknownDocument(NotFound):
    """There is no such document in this workspace."""


class MissingOriginal(NotFound):
    """The file of this document is not kept: it was added before files were. Add it again to have it here."""


class UnknownThread(NotFound):
    """There is no such thread in this workspace."""


class UnknownRun(NotFound):
    """There is no such run in this workspace."""


class UnknownIngestion(NotFound):
    """There is no such ingestion in this workspace."""


class UnknownTape(NotFound):
    """This run has no tape."""


class UnknownKey(NotFound):
    """There is no such key."""


class UnknownAssistant(NotFound):
    """There is no such assistant in this workspace."""


class UnknownSet(NotFound):
    """There is no such set of questions in this workspace, or no such question in it."""


class UnknownCheckpoint(NotFound):
    """There is no such checkpoint in this thread."""


class DamagedState(AskgraphError):
    """A saved state of this conversation is damaged, so that it cannot go on. Ask in a new one."""

    def __init__(self, thread_id: str | None = None, checkpoint_id: str | None = None) -> None:
        super().__init__(
            thread_id
            and f"A saved state of this conversation is damaged, so that it cannot go on (thread {thread_id}, "
            f"checkpoint {checkpoint_id}). Ask in a new one; `askgraph doctor states` lists what is damaged."
        )


class Superseded(AskgraphError):
    """A later version of this document is stored already, and was kept."""


class RunLost(AskgraphError):
    """The question was given up: every process that tried to answer it died. Their logs say why."""


class ThreadBusy(AskgraphError):
    """The thread's other question is still being answered. Wait for it, ask behind it, or interrupt it: `when_busy`, in
    LangGraph's protocol `multitask_strategy`."""

    retryable = True


class Unavailable(AskgraphError):
    """A part that askgraph depends on did not answer. Try again in a moment."""

    retryable = True


class RenderingBusy(Unavailable):
    """As many pages are being drawn for you as may be at once. Try again in a moment."""


class Saturated(Unavailable):
    """This server is answering as many questions as it can. Try again in a few seconds."""

    again_in = 5
    """Seconds after which to try again."""


class TooManyUploads(Saturated):
    """This server is receiving as many files as it can at once. Try again in a few seconds."""


class Draining(Unavailable):
    """This server is about to stop. Try again in a moment."""


class DatabaseUnavailable(Unavailable):
    """The database did not answer. Try again in a moment."""


class DatabaseFull(DatabaseUnavailable):
    """The database cannot store anything, because its disk is full. Free some space there, and try again."""


class LibraryChanged(DatabaseUnavailable):
    """The table that holds the documents was dropped or changed."""

    retryable = False


class CacheUnavailable(Unavailable):
    """The cache did not answer."""


class IdentityProviderUnavailable(Unavailable):
    """The identity provider did not answer. Try again in a moment."""


class StorageUnavailable(Unavailable):
    """The storage of original files did not answer. Try again in a moment."""


class EmbedderUnavailable(Unavailable):
    """The embedding model did not answer."""


class EmbedderReplaced(EmbedderUnavailable):
    """The documents were embedded anew, with another model."""

    retryable = False


class ModelUnavailable(Unavailable):
    """The language model did not answer. Try again in a moment."""

    def __init__(self, message: str | None = None, *, again_in: float | None = None, said: str = "") -> None:
        super().__init__(message)
        self.again_in = again_in
        """Seconds to wait, where the provider says so."""
        self.said = said
        """What the provider said, for whoever runs the service."""


class ModelTimeout(ModelUnavailable):
    """The language model took too long. Try again in a moment, or raise ASKGRAPH_MODEL_TIMEOUT."""


class ModelLoading(ModelUnavailable):
    """The language model is still being loaded. Try again in a moment."""


# Ends a judgement, never a run.
class OverBudget(ModelUnavailable):
    """The run has spent its budget."""


class ModelError(AskgraphError):
    """The language model's reply could not be used."""

    def __init__(self, message: str | None = None, *, said: str = "") -> None:
        super().__init__(message)
        self.said = said
        """What the provider said, for whoever runs the service."""


class ModelRefused(ModelError):
    """The language model's provider refused the request."""


class ModelRejectedKey(ModelError):
    """The language model's provider did not accept the API key."""


class ContextTooLong(ModelError):
    """The prompt does not fit into the language model's context window."""


class ModelReplyCut(ModelError):
    """The language model's reply ended before it was finished. Try again."""

    retryable = True


# What was streamed were thoughts. The adapter knows now, and the same model is asked again.
class ModelThoughtAloud(ModelReplyCut):
    """The language model's thoughts were taken for its answer."""


# Ends a draft, never a run.
class UnsupportedAnswer(ModelError):
    """The sources support nothing of what the language model wrote."""


def explain(error: AskgraphError) -> str:
    """Return the error's message and what the provider said, for whoever runs the service."""
    said = getattr(error, "said", "")
    return error.message if said.rstrip(".") in error.message else f"{error.message} {said}"


class ConfigurationError(AskgraphError):
    """A setting is wrong."""
