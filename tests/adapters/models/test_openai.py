import asyncio
import base64
import gzip
import json
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable

import httpx2
import openai
import pytest
import pytest_asyncio
from pydantic import BaseModel

from app.adapters.chat.langchain import BOUNDED
from app.adapters.chat.openai import OpenAIChat
from app.adapters.sdk_errors import explain_silence, translate_silence
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    explain,
)
from domain.ports.models import ChatModel, Message
from domain.ports.pictures import Picture
from tests.contracts.chat_model import MESSAGES, SEARCH, SOURCE, Call, Judgement, Sink, call
from tests.contracts.provider import PICTURE, Provider, ProviderContract, check_fault
from tests.wire.openai import Fault, OpenAIServer, serve_openai

SHOWN = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PICTURE}"}}
FAULTS: dict[str, type[AskgraphError]] = {
    "policy": ModelRefused,
    "content_filter": ModelRefused,
    "no_quota": ModelError,
    "silent_length": ContextTooLong,  # no token is counted
}
PROVIDER = Provider("openai:gpt-4.1-mini", "gpt-5-mini", "OPENAI_API_KEY", serve_openai, SHOWN, FAULTS, 5, ("cut",))
ASK = [Message("system", "You judge."), Message("user", "Judge.")]

pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture
def provider() -> Provider:
    return PROVIDER


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with openai.DefaultAsyncHttpxClient() as http:
        yield http


def chat(server: OpenAIServer, http: httpx2.AsyncClient, name: str = "gpt-4.1-mini", timeout: float = 10) -> OpenAIChat:
    return OpenAIChat(name, api_key="key", base_url=server.base_url, timeout=timeout, http=http)


async def read(model: ChatModel, sink: Sink | None = None, question: str = "How long is the notice period?") -> str:
    messages = [Message("system", "You answer."), Message("user", f"{SOURCE}\n\nQuestion: {question}")]
    pieces = [piece async for piece in model.stream(messages, sink or Sink(), temperature=0.2, max_tokens=100)]
    return "".join(pieces)


class TestContract(ProviderContract):
    """`OpenAIChat` over the real protocol."""


async def test_an_address_may_be_whole_as_a_portal_shows_it(server: OpenAIServer, http: httpx2.AsyncClient) -> None:
    address = f"{server.base_url}/chat/completions?api-version=2024-06-01"
    model = OpenAIChat("gpt-4.1-mini", api_key="key", base_url=address, timeout=10, http=http)
    assert await read(model)
    assert (str(model.server.base_url), model.server.default_query) == (
        f"{server.base_url}/",
        {"api-version": "2024-06-01"},
    )
    assert model.server.default_headers["api-key"] == "key"


async def test_a_server_on_this_machine_is_asked_without_a_proxy(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with openai.DefaultAsyncHttpxClient(**BOUNDED) as http:
        assert await read(chat(server, http))


def _fail_verification(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, message
    return error


REQUEST = httpx2.Request("POST", "http://models.example")


@pytest.mark.parametrize(
    ("cause", "kind", "says"),
    [
        (_fail_verification(18, "self-signed certificate"), ModelError, "self-signed certificate. SSL_CERT_FILE"),
        (_fail_verification(62, "not valid for 'a'"), ModelError, "for another name: not valid"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), ModelError, "begin with http://"),
        (ssl.SSLEOFError(8, "EOF occurred"), ModelUnavailable, "no encryption: "),
        (httpx2.TooManyRedirects("Exceeded"), ModelError, "in circles"),
        (httpx2.UnsupportedProtocol("Missing"), ModelError, "begin with http:// or https://"),
        (httpx2.RemoteProtocolError("… without …", request=REQUEST), ModelUnavailable, "begin with https://"),
        (socket.gaierror(-2, "Name or service not known"), ModelUnavailable, "no host of this name"),
        (ExceptionGroup("", [ConnectionRefusedError()]), ModelUnavailable, "Nothing listens there. In a container"),
        (httpx2.ConnectTimeout(""), ModelUnavailable, "a firewall may be between. Try again"),
        (None, ModelUnavailable, "The language model did not answer. Try again"),
    ],
)
def test_a_server_that_was_not_reached_is_told_with_the_cause(
    cause: Exception | None, kind: type[AskgraphError], says: str
) -> None:
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = cause
    told = translate_silence(error)
    assert type(told) is kind
    assert says in told.message
    assert explain_silence("It", error, "THE_SETTING").endswith("Check THE_SETTING.")


@pytest.mark.parametrize("status", [301, 302, 308])
async def test_a_question_that_is_sent_elsewhere_stays_one(status: int) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/v1/chat/completions":
            return httpx2.Response(status, headers={"Location": "/other?key=1"})
        return httpx2.Response(405, json={"detail": request.method})

    async with openai.DefaultAsyncHttpxClient(
        transport=httpx2.MockTransport(answer), **{**BOUNDED, "mounts": {}}
    ) as http:
        model = OpenAIChat("m", api_key="key", base_url="http://models.example/v1", timeout=3, http=http)
        with pytest.raises(ModelError, match=r"redirects to http://models\.example/other, where") as caught:
            await read(model)
    assert "POST" in str(caught.value.__cause__.body)  # type: ignore[union-attr]


@pytest.mark.parametrize("place", ["https://models.example/v1", "http://thief.example/v1", "//models.example:8080/"])
async def test_no_redirect_to_another_server_is_followed(place: str) -> None:
    asked = list[str]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(307, headers={"Location": f"{place}?key=1"})

    async with openai.DefaultAsyncHttpxClient(
        transport=httpx2.MockTransport(answer), **{**BOUNDED, "mounts": {}}
    ) as http:
        model = OpenAIChat("m", api_key="key", base_url="http://models.example/v1", timeout=3, http=http)
        host = httpx2.URL("http://models.example").join(place).copy_with(path="/")
        with pytest.raises(ModelError, match=rf"to another server, {host}, which.* Check OPENAI_BASE_URL"):
            await read(model)
        assert "OPENAI_BASE_URL" in str(await model.check())
    assert {httpx2.URL(each).host for each in asked} == {"models.example"}
    assert {each.split(":")[0] for each in asked} == {"http"}


@pytest.mark.parametrize("status", [200, 400, 404, 500])
@pytest.mark.parametrize(
    ("echoes", "leaks"),
    [
        (lambda sent: f"Bad key {sent.headers['authorization']}, sk-secret-one…", "sk-secret"),
        (lambda sent: f"Headers were {dict(sent.headers)}", "dGVhbTp3b3Jk|team:word-of-mouth|word-of-mouth"),
        (lambda sent: f"login team:word-of-mouth, {sent.headers['x-gateway']}", "word-of|gw-secret"),
        (lambda sent: f"Input: {sent.content.decode()}", "notice period|six weeks"),
        (lambda sent: repr(json.loads(sent.content)["messages"]), "notice period|six weeks"),
        (lambda sent: json.dumps(json.dumps(json.loads(sent.content))), "notice period|six weeks"),
    ],
)
async def test_what_an_error_repeats_of_the_request_is_told_to_nobody(
    status: int, echoes: Callable[[httpx2.Request], str], leaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        said = f"It is not so. {echoes(request)}"
        return httpx2.Response(status, content=said) if status == 200 else httpx2.Response(status, json={"error": said})

    caplog.set_level("INFO")
    basic = base64.b64encode(b"team:word-of-mouth").decode()
    headers = {"x-gateway": "gw-secret-two", "x-login": f"Basic {basic}"}
    async with openai.DefaultAsyncHttpxClient(
        transport=httpx2.MockTransport(answer), **{**BOUNDED, "mounts": {}}
    ) as http:
        model = OpenAIChat(
            "m", api_key="sk-secret-one-long", base_url="http://m.example/v1", timeout=3, http=http, headers=headers
        )
        sink = Sink()
        with pytest.raises(AskgraphError) as caught:
            await read(model, sink)
    told = [caught.value.message, explain(caught.value), model.circuit.describe(), caplog.text]
    told += [failure.message for failure in sink.failures]
    assert "It is not so" in "".join(told)
    assert not re.search(leaks, "".join(told)), told


async def test_an_address_is_completed_by_v1_where_nothing_answers(server: OpenAIServer) -> None:
    async with openai.DefaultAsyncHttpxClient(**BOUNDED) as http:
        root = server.base_url.removesuffix("/v1")
        model = OpenAIChat("m", api_key="key", base_url=root, timeout=3, http=http)
        for _ in range(2):
            assert "six weeks" in await read(model)


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", bytes)])
async def test_a_reply_that_is_compressed_unasked_is_read_within_bounds(
    coding: str, compress: Callable[[bytes], bytes]
) -> None:
    replies = [
        b'{"choices": [{"message": {"content": "Six weeks [1]."}, "finish_reason": "stop"}]}',
        b" " * 3_000_000,
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        stream = httpx2.ByteStream(compress(replies.pop(0)))
        return httpx2.Response(200, headers={"Content-Encoding": coding}, stream=stream)

    async with openai.DefaultAsyncHttpxClient(
        transport=httpx2.MockTransport(answer), **{**BOUNDED, "mounts": {}}
    ) as http:
        model = OpenAIChat("m", api_key="key", base_url="http://models.example/v1", timeout=3, http=http)
        if coding != "br":
            assert await read(model) == "Six weeks [1]."
        with pytest.raises(ModelError, match=r"was not read. The response is (too long|compressed \(br\))"):
            await read(model)


async def test_a_stream_that_is_left_has_cost_its_pictures(model: OpenAIChat) -> None:
    sink = Sink()
    for pictures in ([], [Picture("d", 1, 724, 1024, "digest", PICTURE)]):
        messages = [Message("user", "Hello!", pictures=pictures)]
        stream = model.stream(messages, sink, temperature=0.0, max_tokens=50)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
    [without, seeing] = sink.usage
    assert 500 < seeing.input_tokens - without.input_tokens < 2000


@pytest.mark.parametrize("formats", [("json_object",), ()])
async def test_falls_back_where_the_server_knows_no_schemas(
    model: OpenAIChat, server: OpenAIServer, formats: tuple[str, ...]
) -> None:
    server.behaviour.formats = formats
    assert (await model.judge(ASK, Judgement, Sink())).kind == "good"
    asked = len(server.requests)
    assert (await model.judge(ASK, Judgement, Sink())).kind == "good"
    assert len(server.requests) == asked + 1, "what the server understands is remembered"


async def test_notices_a_server_that_ignores_the_format(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.ignores_format = True
    for _ in range(3):
        assert (await model.judge(ASK, Judgement, Sink())).kind == "good"
    asked = len(server.requests)
    assert (await model.judge(ASK, Judgement, Sink())).kind == "good"
    assert len(server.requests) == asked + 1


async def test_a_slip_of_the_model_is_no_habit_of_the_server(model: OpenAIChat, server: OpenAIServer) -> None:
    for _ in range(4):
        server.behaviour.replies = ["Certainly! Here you are."]
        await model.judge(ASK, Judgement, Sink())
        await model.judge(ASK, Judgement, Sink())
    strict = ["response_format" in request for request in server.requests]
    assert strict == [True, False, True] * 4, "only the repair is asked for without a format"


async def test_asks_strictly_and_leaves_out_what_strict_mode_refuses(model: OpenAIChat, server: OpenAIServer) -> None:
    await model.judge(ASK, Judgement, Sink())
    (request,) = server.requests
    asked = request["response_format"]["json_schema"]
    assert asked["strict"] is True
    assert set(asked["schema"]["required"]) == set(Judgement.model_fields), "a property named like a keyword stays"
    assert "maxLength" not in json.dumps(asked)


async def test_reads_json_out_of_a_code_fence(model: OpenAIChat, server: OpenAIServer) -> None:
    class Verdict(BaseModel):
        good: bool

    server.behaviour.replies = ['Sure:\n```json\n{"good": true}\n```']
    assert (await model.judge(ASK, Verdict, Sink())).good
    assert len(server.requests) == 1


async def test_arguments_that_are_no_json_are_told_with_the_call(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.faults = ["misfit_call"]
    (call,) = (await model.act(MESSAGES, [SEARCH], Sink(), max_tokens=100)).calls
    assert call.name == "search"
    assert call.arguments == {}
    assert "cut" in call.problem
    asked = [*MESSAGES, Message("assistant", "", calls=[call]), Message("tool", call.problem, answers=call.id)]
    assert (await model.act(asked, [SEARCH], Sink(), max_tokens=100)).text


async def test_a_model_that_thinks_takes_no_temperature_beside_tools_either(
    server: OpenAIServer, http: httpx2.AsyncClient
) -> None:
    server.behaviour.fixed_temperature = True
    model = chat(server, http, "some-thinker")
    assert (await model.act(ASK, [SEARCH], Sink(), max_tokens=100)).calls
    assert ["temperature" in request for request in server.requests] == [True, False]


@pytest.mark.parametrize(("fault", "error"), [("length", ModelError), ("refusal", ModelRefused)])
async def test_a_reply_beside_tools_that_is_cut_or_refused_is_an_error(
    model: OpenAIChat, server: OpenAIServer, fault: Fault, error: type[Exception]
) -> None:
    server.behaviour.fault = fault
    with pytest.raises(error):
        await model.act(ASK, [SEARCH], Sink(), max_tokens=100)


async def test_a_model_that_refuses_a_parameter_is_asked_without_it(
    server: OpenAIServer, http: httpx2.AsyncClient
) -> None:
    server.behaviour.fixed_temperature = True
    model = chat(server, http, "some-thinker")
    assert "six weeks" in await read(model)
    assert ["temperature" in request for request in server.requests] == [True, False]
    await model.judge(ASK, Judgement, Sink())
    assert "temperature" not in server.requests[2]


async def test_a_server_of_old_is_told_the_limit_in_its_words(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.knows_completion_tokens = False
    assert "six weeks" in await read(model)
    assert server.requests[-1]["max_tokens"] == 100


async def test_a_reasoning_model_gets_room_to_think(server: OpenAIServer, http: httpx2.AsyncClient) -> None:
    server.behaviour.fixed_temperature = True
    await read(chat(server, http, "gpt-5-mini"))
    (request,) = server.requests
    assert request["reasoning_effort"] == "minimal"
    assert request["max_tokens"] > 1000
    assert "temperature" not in request


@pytest.mark.parametrize(
    ("name", "dollars_per_token"),
    [("gpt-4.1-mini", (0.4e-6, 1.6e-6)), ("gpt-4.1-mini-2025-04-14", (0.4e-6, 1.6e-6)), ("llama-at-home", None)],
)
async def test_costs_what_the_price_table_says(
    server: OpenAIServer, http: httpx2.AsyncClient, name: str, dollars_per_token: tuple[float, float] | None
) -> None:
    sink = Sink()
    await read(chat(server, http, name), sink)
    (usage,) = sink.usage
    if dollars_per_token is None:
        assert usage.cost is None
    else:
        expected = usage.input_tokens * dollars_per_token[0] + usage.output_tokens * dollars_per_token[1]
        assert usage.cost == pytest.approx(expected)


async def test_a_call_of_unknown_size_is_recorded_all_the_same(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.sends_usage = False
    sink = Sink()
    await read(model, sink)
    await model.judge(ASK, Judgement, sink)
    assert [(u.input_tokens, u.output_tokens, u.cost) for u in sink.usage] == [(0, 0, None)] * 2


async def test_zeros_for_what_was_written_are_no_count(model: OpenAIChat, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
    monkeypatch.setattr("tests.wire.openai._Reply.usage", lambda reply: zeros)
    sink = Sink()
    await read(model, sink)
    await model.judge(ASK, Judgement, sink)
    assert all(used.estimated and used.input_tokens and used.output_tokens for used in sink.usage)
    assert len(sink.usage) == 2


async def test_a_server_that_counts_in_every_chunk_is_not_paid_for_each(
    model: OpenAIChat, server: OpenAIServer
) -> None:
    at_the_end, all_along = Sink(), Sink()
    await read(model, at_the_end)
    server.behaviour.counts_in_every_chunk = True
    await read(model, all_along)
    assert at_the_end.usage[0].output_tokens > 1
    assert all_along.usage == at_the_end.usage


async def test_a_line_separator_in_the_text_does_not_split_a_chunk(model: OpenAIChat, server: OpenAIServer) -> None:
    said = "Zürich\u2028Genf\x85Bern – 東京\r\nfin"
    server.behaviour.replies = [said]
    assert await read(model) == said


@pytest.mark.parametrize(
    ("how", "fault", "expected"),
    [
        ("judge", "refusal", ModelRefused),
        ("stream", "refusal", ModelRefused),
        ("judge", "empty", ModelError),
        ("stream", "empty", ModelError),
    ],
)
async def test_a_reply_that_says_nothing_is_an_error(how: Call, fault: Fault, expected: type[AskgraphError]) -> None:
    await check_fault(PROVIDER, how, fault, expected)


@pytest.mark.parametrize("timeout", [10, 3])
async def test_waits_as_long_as_the_server_says_and_not_past_its_own_time(timeout: float) -> None:
    async with PROVIDER.open(timeout, faults=["rate_limit"], retry_after=4) as (server, _, model):
        # The wait itself would make the test slow: our own pauses end long before this.
        with pytest.raises(TimeoutError if timeout == 10 else ModelUnavailable) as caught:
            async with asyncio.timeout(0.5):
                await call(model, "judge")
        assert type(caught.value) is not ModelTimeout, "said by the provider, not waited for"
        assert len(server.requests) == 1


async def test_a_reply_that_reached_its_length_says_so_though_nothing_was_counted(
    model: OpenAIChat, server: OpenAIServer
) -> None:
    server.behaviour.faults, server.behaviour.sends_usage = ["length"], False
    sink = Sink()
    for _ in range(2):
        await call(model, "stream", sink)
    assert [used.full for used in sink.usage] == [True, False]


async def test_a_judgement_that_reached_its_length_costs(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.fault = "length"
    sink = Sink()
    with pytest.raises(ModelError):
        await call(model, "judge", sink)
    assert sink.usage[0].input_tokens > 0
