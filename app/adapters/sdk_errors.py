"""Errors of the providers' SDKs as ours: OpenAI's also asks for embeddings and reranks."""

import base64
import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape
from typing import NamedTuple

import httpx2
import openai

from app.adapters.bounded_http import SentElsewhere
from domain.errors import AskgraphError, ModelError, ModelRejectedKey, ModelTimeout, ModelUnavailable

_PASSING = (408, 409, 498, 499)
"""Statuses below 500 after which asking again later may help."""

_SAYING = (
    "message", "detail", "msg", "error_message", "error_msg", "status_msg", "error", "errors", "base_resp", "title",
)  # fmt: skip
"""Fields in which servers and gateways say what went wrong, in the order of how much they tell."""

_PAGE = re.compile(r"<(?:!doctype )?html(?:.{0,2000}<title>\s*(?P<title>[^<]{0,99}[^<\s]))?", re.IGNORECASE | re.DOTALL)


_NO_TLS = re.compile("WRONG_VERSION|RECORD_LAYER|PACKET_LENGTH|HTTP_REQUEST")


LONGEST_MESSAGE = 1000
"""Characters of a provider's message that are kept. Some repeat the whole request."""
_LOOKED_AT = 1500
"""Characters of it in which that is looked for."""
_SHARED, _SHARED_OTHERS = (24, 24), (12, 12)
"""Letters and digits in a row that are the request's and not a provider's own words, about 30 characters of English;
scripts like Chinese say more with each."""
_SHORTEST_SECRET = 6
"""Shorter values are such as `none` or `true`, which any message may hold."""
_COUNTED = re.compile(r"\\+[nrt]|[^\W_]")
_UNCOUNTED = re.compile(r"\\+[nrt]|[\W_]+")
_PUBLIC = {
    "accept", "accept-encoding", "anthropic-version", "api-version", "connection", "content-length", "content-type",
    "host", "idempotency-key", "transfer-encoding", "user-agent",
}  # fmt: skip
"""Headers and parameters that hold nothing of a deployment."""


class _Cause(NamedTuple):
    """Why no server was reached, and whether asking again is no help. The sentence is empty where nobody knows."""

    sentence: str = ""
    lasts: bool = False


def explain_silence(server: str, error: BaseException, address: str) -> str:
    """Return a sentence about a server that was not reached. `address` is the setting of its address."""
    return " ".join(filter(None, (f"{server} does not answer.", _find_cause(error).sentence, f"Check {address}.")))


def translate_silence(
    error: BaseException, again_in: float | None = None, address: str = "OPENAI_BASE_URL"
) -> AskgraphError:
    """Translate the error of a request to a language model that got no reply. `address` is as above."""
    sentence, lasts = _find_cause(error)
    if lasts:
        return ModelError(f"The language model's server cannot be asked. {sentence} Check {address}.")
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
            case SentElsewhere():
                return _Cause(str(each), lasts=True)
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
    return page and ("a web page" + (f" ({clean(' '.join(page['title'].split()), error)})" if page["title"] else ""))


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


def clean(words: str, error: BaseException) -> str:
    """Return the words of a provider's error without what they repeat of the request: its secrets, and runs of its
    words. Every word of a provider that is kept or shown comes through here."""
    words = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), unescape(words[:_LOOKED_AT]))
    words = words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    request = next(filter(None, map(_find_request, _list_causes(error))), None)
    if request is None:
        return words
    for secret in _list_secrets(request):
        words = _cut(words, secret, 12, 8)
    return _cut(words, _read_sent(request), *(_SHARED if words.isascii() else _SHARED_OTHERS))


def _find_request(error: BaseException) -> httpx2.Request | None:
    with suppress(RuntimeError):  # of an error that has none yet
        request = getattr(error, "request", None)
        return request if isinstance(request, httpx2.Request) else None
    return None


def _list_secrets(request: httpx2.Request) -> Iterator[str]:
    """Yield what goes with a request besides its body, which is the deployment's own."""
    for name, value in [*request.headers.items(), *request.url.params.items()]:
        if name not in _PUBLIC and not name.startswith("x-stainless-"):
            scheme, _, credentials = value.rpartition(" ")
            yield from (value, credentials)
            if scheme.lower() == "basic":
                with suppress(ValueError):
                    login = base64.b64decode(credentials).decode()
                    yield from (login, login.partition(":")[2])
    yield request.url.password


def _read_sent(request: httpx2.Request) -> str:
    """Return the texts of the body; names of models are none."""

    def list_texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | dict):
            named = value if isinstance(value, Mapping) else dict(enumerate(value))
            for name, each in named.items():
                yield from () if name == "model" else list_texts(each)

    with suppress(ValueError, RecursionError, httpx2.RequestNotRead):
        return "\n".join(list_texts(json.loads(request.content)))
    return ""


def _cut(words: str, sent: str, shared: int, begun: int) -> str:
    """Return the words without what has `shared` letters and digits in a row with what was sent, or the first `begun`
    of it. Blanks, marks and case do not count, nor does how a line's end is written."""
    sent = _UNCOUNTED.sub("", sent).lower()
    if len(sent) < _SHORTEST_SECRET:
        return words
    shared = min(shared, len(sent))
    places = [found.start() for found in _COUNTED.finditer(words) if len(found[0]) == 1]
    said = "".join(words[place].lower()[:1] for place in places)
    kept, end, start = list[str](), 0, 0
    while start + begun <= len(said) or start + shared <= len(said):
        stop = start + shared
        if said[start:stop] not in sent or stop > len(said):
            stop = start + begun
            if said[start:stop] != sent[:begun]:
                start += 1
                continue
        while stop < len(said) and said[start : stop + 1] in sent:
            stop += 1
        kept += [words[end : places[start]], "…"]
        start, end = stop, places[stop - 1] + 1
    return "".join([*kept, words[end:]])


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
            said = clean(find_words(error.body) or error.message, error)[:LONGEST_MESSAGE]
            return ModelError(f"{model} did not accept the request: {said}")
        case openai.APIResponseValidationError():
            return ModelError(f"{model} sent a reply that violates its protocol.")
        case openai.OpenAIError() | httpx2.HTTPError():
            sentence, lasts = _find_cause(error)
            checked = f" Check {names}." * lasts
            return (ModelError if lasts else ModelUnavailable)(f"{model} does not answer. {sentence}{checked}".strip())
        case _:
            return ModelError(f"{model} sent a reply that violates its protocol.")
