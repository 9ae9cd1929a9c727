"""The exceptions of the client, by what to do about them. `code` is the server's own, finer name of the error.

::

    AskgraphError
    ├── InputError         the request is wrong; asking again unchanged is useless
    ├── Unauthenticated    no key, or one that is not valid
    ├── Forbidden          the key lacks a right
    ├── NotFound
    ├── OverLimit          the key has used up what it may use for now
    ├── ThreadBusy         the thread's other question is not answered yet
    ├── DamagedState       a saved state cannot be read; its thread cannot go on
    ├── ModelError         the language model answered, but not with something usable
    └── Unavailable        the server, or a part of it, did not answer; asking again may help
"""

import json
from collections.abc import Mapping
from typing import Any


class AskgraphError(Exception):
    """The server failed."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        retryable: bool = False,
        status: int | None = None,
        again_in: float | None = None,
        details: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """The stable name of the error, such as `unknown_document`."""
        self.retryable = retryable
        """True where asking again may help."""
        self.status = status
        """The HTTP status; None where there was no response, or a run has failed."""
        self.again_in = again_in
        """Seconds after which to try again, where the server says so."""
        self.details = details or []
        """The fields of the request that are wrong, each with `field` and `problem`."""


class InputError(AskgraphError):
    """The request is not valid."""


class Unauthenticated(AskgraphError):
    """The server needs a key, or does not know this one."""


class Forbidden(AskgraphError):
    """The key does not have the right to do this."""


class NotFound(AskgraphError):
    """There is no such thing."""


class OverLimit(AskgraphError):
    """The key has used up what it may use for now."""


class ThreadBusy(AskgraphError):
    """The thread's other question is still being answered."""


class DamagedState(AskgraphError):
    """A saved state of the conversation is damaged, so that it cannot go on."""


class ModelError(AskgraphError):
    """The language model's reply could not be used."""


class Unavailable(AskgraphError):
    """The server, or a part of it, did not answer. Try again in a moment."""


_BY_STATUS: dict[int, type[AskgraphError]] = {
    400: InputError,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: InputError,
    413: InputError,
    422: InputError,
    429: OverLimit,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
"""For names that this client does not know."""

_CODES: dict[type[AskgraphError], str] = {
    InputError: (
        "input_error question_error unknown_mode filter_error metadata_error state_error calculation_error not_on_tape "
        "document_error unreadable_document encrypted_document empty_document scanned_document "
        "oversized_document storage_full ambiguous_name restricted_text costly_document mistyped_document "
        "unsupported_document invalid_request method_not_allowed oversized_request assistant_error name_taken"
    ),
    Unauthenticated: "unauthenticated sign_in_failed",
    Forbidden: "forbidden",
    NotFound: (
        "not_found unknown_workspace unknown_document missing_original unknown_thread unknown_run "
        "unknown_ingestion unknown_tape unknown_key unknown_assistant unknown_set unknown_checkpoint"
    ),
    OverLimit: "over_limit rate_limited too_many_runs budget_spent",
    ThreadBusy: "thread_busy",
    DamagedState: "damaged_state",
    ModelError: (
        "model_error model_refused model_rejected_key context_too_long model_reply_cut model_thought_aloud "
        "unsupported_answer"
    ),
    Unavailable: (
        "unavailable rendering_busy saturated too_many_uploads draining database_unavailable database_full "
        "library_changed cache_unavailable identity_provider_unavailable storage_unavailable embedder_unavailable "
        "embedder_replaced model_unavailable model_timeout over_budget"
    ),
}
"""The server's names of errors, by what to do about them. A test compares them with the server's own."""

_BY_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> AskgraphError:
    """Make the error of a response that is not a success."""
    try:
        said = json.loads(body)["error"]
        message, code = str(said["message"]), str(said["code"])
    except (ValueError, KeyError, TypeError):
        # Of a proxy, or of no askgraph at all.
        said, code = {}, "http_error"
        message = f"The server answered with status {status}, and not as askgraph does. Check its address."
        if status == 413:
            message = "A proxy before the server takes nothing of this size: its limit (nginx: client_max_body_size)."
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, AskgraphError)
    again_in = headers.get("retry-after", "")
    return kind(
        message,
        code=code,
        retryable=bool(said.get("retryable", status in (429, 502, 503, 504))),
        status=status,
        again_in=float(again_in) if again_in.isdigit() else None,
        details=said.get("details"),
    )


def read_failure(data: Mapping[str, Any]) -> AskgraphError:
    """Make the error of a run that ended with an `error` event."""
    code, retryable = str(data.get("code", "error")), bool(data.get("retryable"))
    kind = _BY_CODE.get(code) or (Unavailable if retryable else AskgraphError)
    return kind(str(data.get("message", "The run failed.")), code=code, retryable=retryable)


def unknown_form(error: ValueError) -> AskgraphError:
    """Make the error of a reply that is not as this client knows it."""
    return AskgraphError(f"The server's reply cannot be read; client and server differ in version: {error}")
