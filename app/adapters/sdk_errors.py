"""Errors of the providers' SDKs as ours: OpenAI's also asks for embeddings and reranks."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from typing import NamedTuple

import httpx2
import openai

from domain.errors import AskgraphError, ModelError, ModelRejectedKey, ModelTimeout, ModelUnavailable

_PASSING = (408, 409, 498, 499)
"""Statuses below 500 after which asking again later may help."""

_SAYING = (
    "message", "detail", "msg", "error_message", "error_msg", "status_msg", "error", "errors", "base_resp", "title",
)  # fmt: skip
"""Fields in which servers and gateways say what went wrong, in the order of how much they tell."""

_PAGE = re.compile(r"<(?:!doctype )?html(?:.{0,2000}<title>\s*(?P<title>[^<]{0,99}[^<\s]))?", re.IGNORECASE | re.DOTALL)


_NO_TLS = re.compile("WRONG_VERSION|RECORD_LAYER|PACKET_LENGTH|HTTP_REQUEST")


class _Cause(NamedTuple):
    """Why no server was reached, and whether asking again is no help. The sentence is empty where nobody knows."""

    sentence: str = ""
    lasts: bool = False


def explain_silence(server: str, error: BaseException, address: str) -> str:
    """Return a sentence about a server that was not reached. `address` is the setting of its address."""
    return " ".join(filter(None, (f"{server} does not answer.", _find_cause(error).sentence, f"Check {address}.")))


def translate_silence(error: BaseException, again_in: float | None = None) -> AskgraphError:
    """Translate the error of a request to a language model that got no reply."""
    sentence, lasts = _find_cause(error)
    if lasts:
        return ModelError(f"The language model's server cannot be asked. {sentence}")
    message = f"The language model did not answer. {sentence} Try again in a moment." if sentence else None
    return ModelUnavailable(message, again_in=again_in)


def _find_cause(error: BaseException) -> _Cause:
    """Return what SDKs and HTTP clients tell only by the errors behind theirs."""
    for each in _list_causes(error):
        match each:
            case ssl.SSLCertVerificationError() if each.verify_code in (62, 64):
                return _Cause(f"Its certificate is for another name: {each.verify_message}", lasts=True)
            case ssl.SSLCertVerificationError():
                remedy = "SSL_CERT_FILE may name a file with the certificate of whoever has signed it."
                return _Cause(f"Its certificate is not trusted here: {each.verify_message}. {remedy}", lasts=True)
            case ssl.SSLError() if _NO_TLS.search(str(each)):
                return _Cause("It does not speak https: its address may have to begin with http://.", lasts=True)
            case ssl.SSLError():
                return _Cause(f"It agrees on no encryption: {each}.")
            case httpx2.UnsupportedProtocol():
                return _Cause("Its address has to begin with http:// or https://.", lasts=True)
            case httpx2.TooManyRedirects():
                return _Cause("Its address redirects in circles.", lasts=True)
            case httpx2.RemoteProtocolError() if "without" in str(each) and each.request.url.scheme == "http":
                return _Cause("It hung up without a reply: its address may have to begin with https://.")
            case socket.gaierror():
                return _Cause("There is no host of this name, or no DNS that knows it.")
            case ConnectionRefusedError():
                return _Cause("Nothing listens there. In a container, localhost is the container itself.")
            case httpx2.ConnectTimeout():
                return _Cause("No connection comes about: a firewall may be between.")
    return _Cause()


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        # Of several addresses that one name has.
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error.__context__


def find_page(error: Exception) -> str | None:
    """Return how to name a web page that came instead of a reply, of a firewall or to sign in; None where it is
    none."""
    page = None if getattr(error, "status_code", 0) >= 500 else _PAGE.search(str(getattr(error, "body", error)))
    return page and ("a web page" + (f" ({' '.join(page['title'].split())})" if page["title"] else ""))


def find_words(said: object, depth: int = 5) -> str:
    """Return what the body of an error says in words, in whatever field; nothing of one that says none, as of a page of
    HTML."""
    if isinstance(said, str):
        return "" if said.lstrip().startswith("<") else " ".join(said.split())
    if isinstance(said, list) and depth:
        return "; ".join(dict.fromkeys(filter(None, (find_words(each, depth - 1) for each in said[:5]))))
    if not isinstance(said, dict) or not depth:
        return ""
    words = next(filter(None, (find_words(said.get(name), depth - 1) for name in _SAYING)), "")
    metadata = said.get("metadata")
    if words and isinstance(metadata, dict) and (behind := _read_behind(metadata.get("raw"), depth - 1)):
        words = f"{words}: {behind}"
    place = said.get("loc")  # of pydantic
    return f"{'.'.join(map(str, place))}: {words}" if words and isinstance(place, list) else words


def _read_behind(raw: object, depth: int) -> str:
    """Return the words of the server behind a gateway (OpenRouter), which may be JSON as text."""
    try:
        told = json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        told = raw
    return find_words(told, depth) or (find_words(raw) if isinstance(raw, str) else "")


def translate(error: Exception, model: str, *, keys: str, names: str) -> AskgraphError:
    """Translate an error of a call of a model, which is named as in "The reranker rerank-v3.5". `keys` and `names` are
    the settings of its key, and of its name and address."""
    match error:
        case TimeoutError() | openai.APITimeoutError() | httpx2.TimeoutException():
            return ModelTimeout(f"{model} took too long. Try again in a moment.")
        case openai.APIStatusError() if page := find_page(error):
            return ModelError(f"{model} is out of reach: its address answers with {page}. Check {names}.")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return ModelRejectedKey(f"{model} did not accept the API key. Check {keys}.")
        case openai.NotFoundError():
            return ModelError(f"{model} does not exist at this address. Check {names}.")
        case openai.RateLimitError() if error.code == "insufficient_quota":
            return ModelError(f"{model} is refused: the account behind the API key has no quota left.")
        case openai.RateLimitError():
            return ModelUnavailable(f"{model} takes no more requests for now. Try again in a moment.")
        case openai.APIStatusError() if error.status_code >= 500:
            return ModelUnavailable(f"{model} had an error ({error.status_code}). Try again in a moment.")
        case openai.APIStatusError() if error.status_code not in _PASSING:
            return ModelError(f"{model} did not accept the request: {find_words(error.body) or error.message}")
        case openai.APIResponseValidationError():
            return ModelError(f"{model} sent a reply that violates its protocol.")
        case openai.OpenAIError() | httpx2.HTTPError():
            return ModelUnavailable(f"{model} does not answer. {_find_cause(error).sentence}".strip())
        case _:
            return ModelError(f"{model} sent a reply that violates its protocol.")
