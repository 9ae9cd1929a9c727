"""Every habit of a server is borne: thoughts are told to nobody, and what is refused is asked without it."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from app.adapters.chat import openai as chat
from app.adapters.chat.openai import OpenAIChat
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelRejectedKey,
    ModelReplyCut,
    ModelThoughtAloud,
    ModelTimeout,
    ModelUnavailable,
)
from domain.ports.models import Message
from nodes.prompting.asking import within
from tests.adapters.models.test_openai import PROVIDER
from tests.contracts.chat_model import MESSAGES, SEARCH, Judgement, Sink, call
from tests.wire.habits import CALL, HABITS, JUDGEMENT, THOUGHT, WORDS, Habit

pytestmark = pytest.mark.usefixtures("short_pauses")

ASK = [Message("system", "You judge."), Message("user", "Judge.")]
_TGI = "Input validation error: `inputs` must have less than 1512 tokens. Given: 1600"


@pytest.mark.parametrize("habit", HABITS, ids=[habit.name for habit in HABITS])
async def test_a_server_of_other_habits_serves_as_well(habit: Habit) -> None:
    async with PROVIDER.open(3, habit=habit) as (server, _, model):
        for _ in range(2):
            server.requests.clear()
            sink = Sink()
            assert (await model.judge(ASK, Judgement, sink)).kind == "good"
            (called,) = (await model.act(MESSAGES, [SEARCH], sink, max_tokens=100)).calls
            assert (called.name, called.arguments) == ("search", CALL)
            assert called.id
            told = [Message("assistant", "", calls=[called]), Message("tool", "Found.", answers=called.id)]
            await model.act([*MESSAGES, *told], [SEARCH], sink, max_tokens=100)
            said = await call(model, "stream", sink)
            assert "six weeks [1]." in said
            assert said.startswith("The notice")
            assert said.count("[1].") == 1
            assert said.rstrip().endswith("[1].")
            assert "told" not in said
        assert len(server.requests) == 4, "what was learnt is kept"


async def test_a_prompt_longer_than_any_that_was_answered_is_too_long_whatever_is_said() -> None:
    short = Habit("short", "", "", refuses=lambda body: "No." if len(str(body["messages"])) > 2000 else None)
    async with PROVIDER.open(3, habit=short) as (_, _, model):
        assert await call(model, "stream")
        with pytest.raises(ContextTooLong):
            await call(model, "stream", messages=[*MESSAGES, Message("user", "x" * 3000)])


@pytest.mark.parametrize(
    ("window", "says", "asked"),
    [
        (1536, "The maximum context length is {window} tokens. However, you requested {total} tokens ({prompt} in the "
         "messages, {limit} in the completion).", [1000, 548]),
        (1536, "'max_tokens' is too large: {limit}. This model's maximum context length is {window:,} tokens and your "
         "request has {prompt} input tokens ({limit} > {window} - {prompt}).", [1000, 548]),
        (1512, "`inputs` tokens + `max_new_tokens` must be <= {window}. Given: {prompt} `inputs` tokens and {limit} "
         "`max_new_tokens`", [1000, 524]),
        (1536, "max_tokens exceeds the available context", [1000, 500]),
        (1300, "max_tokens exceeds the available context", [1000, 500, 250]),
        (1536, "You requested up to {limit} tokens, but can only afford 548.", [1000, 548]),
        (1536, "Request too large on tokens per minute (TPM): Limit {window}, Requested {total}, please reduce it.",
         [1000, 548]),
        (1100, "The maximum context length is {window} tokens: {prompt} in the messages, {limit} in the completion.",
         [1000]),
        (900, "The maximum context length is {window} tokens. However, you requested {total} tokens ({prompt} in the "
         "messages, {limit} in the completion).", [1000]),
    ],
)  # fmt: skip
async def test_a_reply_is_asked_for_in_the_room_that_the_prompt_leaves(
    window: int, says: str, asked: list[int]
) -> None:
    def refuse(body: dict[str, Any]) -> str | None:
        limit, prompt = body["max_tokens"], 988
        told = says.format(window=window, total=prompt + limit, prompt=prompt, limit=limit)
        return told if prompt + limit > window else None

    status = 402 if "afford" in says else 413 if "TPM" in says else 400
    async with PROVIDER.open(3, habit=Habit("tight", "", "", refuses=refuse, status=status)) as (server, _, model):
        writing = model.stream(MESSAGES, Sink(), temperature=0.0, max_tokens=1000)
        if window - 988 < 260:
            with pytest.raises(ContextTooLong):
                await anext(aiter(writing))
        else:
            assert "".join([piece async for piece in writing]) == WORDS
        assert [body["max_tokens"] for body in server.requests] == asked
        if status == 413:
            async for _ in model.stream(MESSAGES, Sink(), temperature=0.0, max_tokens=1000):
                pass
            assert len(server.requests) == 3, "what was learnt is kept"


async def test_what_was_learnt_is_forgotten_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    [cold] = [habit for habit in HABITS if habit.name == "no-temperature"]
    async with PROVIDER.open(3, habit=cold) as (server, _, model):
        await call(model, "stream")
        monkeypatch.setattr(chat, "KEPT", 0.0)
        server.behaviour.habit = HABITS[0]
        await call(model, "stream")
        assert ["temperature" in request for request in server.requests] == [True, False, True]


@pytest.mark.parametrize(
    ("habit", "error"),
    [
        (Habit("error", "", "", body=lambda body: {"error": {"message": "Quota exceeded", "code": 402}}), ModelError),
        (Habit("busy", "", "", body=lambda body: {"error": "overloaded"}), ModelUnavailable),
        (Habit("partial", "", "", finish=lambda body, finish: "error"), ModelUnavailable),
        (Habit("aborted", "", "", finish=lambda body, finish: "abort"), ModelUnavailable),
        (Habit("page", "", "", body=lambda body: "<html>Sign in</html>"), ModelError),
        (Habit("sensitive", "", "", finish=lambda body, finish: "sensitive"), ModelRefused),
        (Habit("recites", "", "", finish=lambda body, finish: "content_filter: RECITATION"), ModelRefused),
        (Habit("no-path", "", "", body=lambda body: {"error": "Unexpected endpoint or method. (POST)"}), ModelError),
        (Habit("tgi", "", "", status=422, refuses=lambda body: {"error": _TGI}), ContextTooLong),
        (Habit("filtered", "", "", refuses=lambda body: '{"error": "Violated guardrail policy"}'), ModelRefused),
        (Habit("blank", "", "", text=lambda text: "\n" * len(text)), ModelError),
        (Habit("only-thoughts", "", "", message=lambda message: {"content": None, "reasoning": "Hm."}), ModelError),
    ],
    ids=lambda habit: getattr(habit, "name", ""),
)
async def test_an_error_inside_a_reply_is_one(habit: Habit, error: type[AskgraphError]) -> None:
    async with PROVIDER.open(3, habit=habit) as (_, _, model):
        for how in ("judge", "stream"):
            with pytest.raises((error, ModelReplyCut)):
                await call(model, how)


async def test_thoughts_go_to_the_sink_alone() -> None:
    [thinking] = [habit for habit in HABITS if habit.name == "think-tags"]
    async with PROVIDER.open(3, habit=thinking) as (_, _, model):
        for how in ("judge", "stream"):
            sink = Sink()
            assert "told" not in await call(model, how, sink, ASK)
            assert THOUGHT in "".join(sink.thoughts)


async def test_thoughts_that_were_told_are_taken_back_and_known_from_then_on() -> None:
    [closing] = [habit for habit in HABITS if habit.name == "closing-tag-only"]
    async with PROVIDER.open(3, habit=closing) as (_, _, model):
        with pytest.raises(ModelThoughtAloud):
            await call(model, "stream")
        assert await call(model, "stream") == WORDS


@pytest.mark.parametrize(
    ("word", "full", "ended"),
    [("network_error", False, "network_error"), ("MAX_TOKENS", True, ""), ("eos", False, ""), ("endTurn", False, "")],
)
async def test_a_reply_with_an_unknown_end_is_not_taken_for_whole(word: str, full: bool, ended: str) -> None:
    sink = Sink()
    async with PROVIDER.open(3, habit=Habit("ends", "", "", finish=lambda body, finish: word)) as (_, _, model):
        await call(model, "stream", sink)
    assert [(used.full, used.ended) for used in sink.usage] == [(full, ended)]


@pytest.mark.parametrize("slips", [1, 2])
async def test_a_call_that_the_model_wrote_wrongly_is_asked_for_once_more(slips: int) -> None:
    slipping = [
        {"choices": [{"message": {}, "finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"}]}
    ] * slips
    async with PROVIDER.open(3, send=lambda body: _send(slipping.pop()) if slipping else None) as (server, _, model):
        if slips == 1:
            assert await call(model, "act") == "search"
        else:
            with pytest.raises(ModelError, match="ended with 'function_call_filter"):
                await call(model, "act")
        assert len(server.requests) == 2


async def test_marks_of_templates_are_words_where_code_speaks_of_them() -> None:
    spoken = "Write `<|im_end|>` at the end, and:\n```\n<think>\n<|eot_id|>\n```\nThat is all [1]."
    async with PROVIDER.open(3, habit=Habit("code", "", "", text=lambda text: spoken)) as (_, _, model):
        assert await call(model, "stream") == spoken


async def test_a_refusal_within_a_stream_is_learnt() -> None:
    [refusing] = [habit for habit in HABITS if habit.name == "no-system-200"]
    async with PROVIDER.open(3, habit=refusing) as (server, _, model):
        for _ in range(2):
            assert await call(model, "stream") == WORDS
        assert len(server.requests) == 3


async def test_thoughts_without_signs_that_never_end_are_no_reply() -> None:
    bare = Habit("bare", "", "", text=lambda text: f"analysis{text}")
    async with PROVIDER.open(3, habit=bare) as (_, _, model):
        with pytest.raises(ModelError, match="nothing but thoughts"):
            await call(model, "stream")


async def test_a_refusal_that_nothing_helps_is_not_tried_again_in_every_way() -> None:
    gone = Habit("gone", "", "", refuses=lambda body: "The model has been decommissioned.")
    async with PROVIDER.open(3, habit=gone) as (server, _, model):
        for _ in range(2):
            server.requests.clear()
            with pytest.raises(ModelError, match="decommissioned"):
                await call(model, "stream")
        assert len(server.requests) == 1


_AZURE = "Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Retry after 0 seconds."


async def test_a_busy_provider_is_not_a_prompt_that_is_too_long() -> None:
    busy = Habit("busy", "", "", status=429, refuses=lambda body: _AZURE)
    async with PROVIDER.open(3, habit=busy) as (server, _, model):
        with pytest.raises(ModelUnavailable) as caught:
            await call(model, "stream")
        assert isinstance(model, OpenAIChat)
        assert "S0 pricing tier" in caught.value.said
        assert "S0 pricing tier" in str(model.circuit.problem)
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "said", "is_spent"),
    [
        (400, {"message": "Budget has been exceeded! Current cost: 76.16, Max: 10.0", "type": "budget_exceeded"}, True),
        (429, {"message": "Budget has been exceeded! Current cost: 76.16, Max: 10.0", "type": "budget_exceeded"}, True),
        (429, {"message": "Please check your plan.", "code": "insufficient_quota"}, True),
        (402, {"message": "This request requires more credits, or fewer max_tokens."}, True),
        (400, {"message": "Your credit balance is too low to access the API."}, True),
        (403, {"message": "You have run out of free quota."}, True),
        (429, {"message": "You exceeded your current quota. Please retry in 10ms."}, False),
        (429, {"message": "Quota exceeded for requests per minute."}, False),
        (429, {"message": "Resource has been exhausted (e.g. check quota)."}, False),
        (400, {"message": "The thinking budget exceeds max_tokens."}, False),
        (400, {"message": "max_tokens must exceed thinking.budget_tokens."}, False),
    ],
)
async def test_a_budget_that_is_used_up_is_asked_for_once(status: int, said: dict[str, Any], is_spent: bool) -> None:
    spent = Habit("spent", "", "", status=status, refuses=lambda body: {"error": said})
    for how in ("judge", "stream"):
        async with PROVIDER.open(3, habit=spent) as (server, _, model):
            with pytest.raises(AskgraphError) as caught:
                await call(model, how)
            assert ("budget of the language model" in caught.value.message) == is_spent
            assert (len(server.requests) == 1) == is_spent
            assert said["message"].rstrip(".") in caught.value.message or not is_spent


def _reset(seconds: float, unit: int, left: int = 0) -> object:
    headers = {"X-RateLimit-Reset": str(int((time.time() + seconds) * unit)), "X-RateLimit-Remaining": str(left)}
    return {"error": {"message": "Rate limit exceeded: free-models-per-day.", "metadata": {"headers": headers}}}


_RAW = {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "Slow down"}}'}}}


@pytest.mark.parametrize(
    ("status", "said", "expected", "says", "count"),
    [
        (403, "Requires moderation. Your input was flagged. No credits were charged.", ModelRefused, "refused", 1),
        (400, "Content Exists Risk", ModelRefused, "refused", 1),
        (400, [{"error": {"message": "Input data may contain inappropriate content."}}], ModelRefused, "refused", 1),
        (424, "Request failed during generation.", ModelUnavailable, "failed during generation", 3),
        (429, "No deployments available, try again in 60 seconds.", ModelUnavailable, "is busy", 1),
        (429, "Limit 100000 of tokens per day. Please try again in 7m12.48s.", ModelUnavailable, "in 7 minutes", 1),
        (429, "Exceeded rate limit. Please retry after 86400 seconds.", ModelUnavailable, "busy.*in 24 hours", 1),
        (429, [{"error": {"message": "Limit: 10. Please retry in 43.2s."}}], ModelUnavailable, "is busy", 1),
        (429, _reset(54000, 1000), ModelUnavailable, "in 15 hours", 1),
        (429, _reset(54000, 1), ModelUnavailable, "in 15 hours", 1),
        (429, _reset(54000, 1000, left=3), ModelUnavailable, "is busy", 3),
        (403, _RAW, ModelRejectedKey, "returned error: Slow down", 1),
        (413, "On tokens per minute (TPM): Limit 90, Requested 3,500.", ContextTooLong, "minute.*Limit 90, Req", 1),
        (429, [{"error": {"details": [{"retryDelay": "43s"}]}}], ModelUnavailable, "is busy", 1),
        (400, "Range of input length should be [1, 30720]", ContextTooLong, "does not fit", 1),
        (400, "The tokens in the prompt and completion must not exceed 8192", ContextTooLong, "does not fit", 3),
        (429, "You have reached your weekly usage limit.", ModelError, "budget", 1),
        (404, "No models loaded.", ModelError, r"address: No models loaded\..*ends in /v1", 1),
        (404, "No endpoints match your guardrail restrictions.", ModelError, "account and address: No endpoints", 1),
        (405, "Method Not Allowed", ModelError, "takes no questions.*usually ends in /v1", 1),
        (404, {"success": False, "errors": [{"code": 1, "message": "No route"}]}, ModelError, ": No route", 1),
        (403, {"detail": "Invalid host header"}, ModelRejectedKey, "address: Invalid host header", 1),
        (403, "<html><title>Blocked</title>", ModelError, r"a web page \(Blocked\)", 1),
    ],
)
async def test_what_a_refusal_means_is_read_from_all_that_is_said(
    status: int, said: object, expected: type[AskgraphError], says: str, count: int
) -> None:
    refusing = Habit("r", "", "", status=status, refuses=lambda body: said)  # type: ignore[arg-type,return-value]
    async with PROVIDER.open(3, habit=refusing) as (server, _, model):
        with pytest.raises(expected, match=says):
            await call(model, "stream")
        assert len(server.requests) == count


@pytest.mark.parametrize(
    ("status", "said", "times", "loads"),
    [
        (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 4, True),
        (503, {"error": "Model meta-llama/Llama-3.1-8B is currently loading", "estimated_time": 20.0}, 4, True),
        (503, {"error": {"message": "OpenAIException - Loading model. Received Model Group=large"}}, 4, True),
        (500, {"error": {"message": "unexpected server status: llm server loading model"}}, 4, True),
        (503, {"error": "The model is still being loaded. Retry after 0.1 s."}, 1, True),
        (503, {"error": "The model is still being loaded. Retry after 9 s."}, 1, False),
        (503, {"error": {"message": "Loading model"}}, 99, False),
        (503, {"error": "The model is overloaded."}, 3, None),
        (500, {"error": "error loading model: unable to allocate CUDA0 buffer"}, 3, None),
    ],
)
async def test_a_server_that_says_that_it_loads_is_waited_for(
    status: int, said: object, times: int, loads: bool | None
) -> None:
    left = [said] * times
    slow = Habit("l", "", "", status=status, refuses=lambda body: left.pop() if left else None)  # type: ignore[arg-type,return-value]
    async with PROVIDER.open(3, habit=slow) as (server, _, model):
        if loads:
            assert await call(model, "stream") == WORDS
            assert len(server.requests) == times + 1
            return
        with pytest.raises(ModelUnavailable) as caught:
            async with within(time.monotonic() + 0.3, ModelTimeout()):
                await call(model, "stream")
        assert ("is still being loaded: " in caught.value.message) == (loads is False)
        assert len(server.requests) == times or times == 99


async def test_tools_are_told_as_text_where_a_schema_of_theirs_is_refused() -> None:
    said: list[str] = []
    picky = Habit("picky", "", "", refuses=lambda body: said[0] if said and body.get("tools") else None)
    async with PROVIDER.open(3, habit=picky) as (server, _, model):
        await call(model, "act")
        said.append("Failed to initialize samplers: failed to parse grammar")
        assert await call(model, "act") == "search"
        assert len(server.requests) == 3


async def test_what_the_server_behind_a_gateway_says_is_heard() -> None:
    said = {"message": "Provider returned error", "code": 400, "metadata": {"raw": "maximum context length is 4096"}}
    async with PROVIDER.open(3, send=lambda body: _send({"error": said})) as (server, _, model):
        with pytest.raises(ContextTooLong):
            await call(model, "stream")
        assert len(server.requests) == 1


async def test_a_server_goes_on_loading_a_model_that_was_waited_for_in_vain() -> None:
    async with PROVIDER.open(0.2, fault="stall_before", stall=1) as (server, connections, model):
        for _ in range(2):
            with pytest.raises(ModelTimeout):
                await call(model, "stream")
        assert [body["max_tokens"] for body in server.requests].count(1) == 1
        await connections.close()


async def _send(*replies: object) -> AsyncIterator[bytes]:
    for reply in replies:
        yield (b"data: " if len(replies) > 1 else b"") + json.dumps(reply).encode() + b"\n\n"


_OPENED = [{"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}]
_BEGUN = [*_OPENED, {"choices": [{"delta": {"content": "The notice"}, "finish_reason": None}]}]


@pytest.mark.parametrize(
    ("before", "error", "expected", "says", "count"),
    [
        (_OPENED, {"code": 429, "message": "Slow down."}, ModelUnavailable, "is busy", 3),
        (_OPENED, {"message": "Odd voice.", "code": None}, ModelUnavailable, "error: Odd voice. Try", 3),
        (_OPENED, {"message": "The model has crashed. (Exit code: 18446744072635)"}, ContextTooLong, "not fit", 1),
        (_OPENED, {"message": _TGI, "http_status_code": 422}, ContextTooLong, "does not fit", 1),
        (_OPENED, {"message": "Odd voice.", "status": 403}, ModelRejectedKey, "may not be used", 1),
        (_BEGUN, {"code": 429, "message": "Slow down."}, ModelUnavailable, "is busy", 1),
        (_OPENED, {"message": "encountered while running the model: unexpected EOF"}, ContextTooLong, "not fit", 1),
        (_BEGUN, {"message": "runner crashed"}, ModelUnavailable, "error: runner crashed. Try", 1),
        (_BEGUN, {"message": "Not on this GPU.", "code": "400"}, ModelError, "request: Not on this GPU.", 1),
    ],
)
async def test_an_error_within_a_stream_is_what_its_status_says(
    before: list[Any], error: object, expected: type[AskgraphError], says: str, count: int
) -> None:
    async with PROVIDER.open(3, send=lambda body: _send(*before, {"error": error})) as (server, _, model):
        with pytest.raises(expected, match=says):
            await call(model, "stream")
        assert len(server.requests) == count


@pytest.mark.parametrize("status", [400, 500])
async def test_a_server_that_breaks_down_at_shorter_prompts_too_is_broken(status: int) -> None:
    down = Habit("down", "", "", status=status, refuses=lambda body: "The model has crashed.")
    async with PROVIDER.open(3, habit=down) as (server, _, model):
        with pytest.raises(ContextTooLong):
            await call(model, "stream", messages=[*MESSAGES, Message("user", "x" * 3000)])
        with pytest.raises((ModelError, ModelUnavailable), match="The model has crashed"):
            await call(model, "stream")
        assert len(server.requests) == (2 if status == 400 else 4)


async def test_a_window_that_thoughts_fill_is_named() -> None:
    usage = {"prompt_tokens": 4000, "completion_tokens": 96}
    small = Habit(
        "small", "", "", message=lambda message: {"reasoning": "Well."}, finish=lambda body, finish: "length",
        body=lambda body: {**body, "usage": usage},
    )  # fmt: skip
    async with PROVIDER.open(3, habit=small) as (_, _, model):
        with pytest.raises(ModelError, match=r"stopped by its server at 288 tokens.*OLLAMA_CONTEXT_LENGTH"):
            await call(model, "stream")


@pytest.mark.parametrize(
    "told",
    [
        {"object": "error", "message": "Odd voice.", "code": 400},
        {"error": "Input validation error: `top_p` must be > 0.0", "error_type": "validation"},
    ],
)
async def test_an_error_that_stands_for_a_chunk_is_what_its_status_says(told: dict[str, Any]) -> None:
    async with PROVIDER.open(3, send=lambda body: _send(*_OPENED, told)) as (_, _, model):
        with pytest.raises(ModelError, match=r"did not accept the request: (Odd voice|Input validation)"):
            await call(model, "stream")


_OVER = {"code": 503, "message": "The model is overloaded."}
_LATE = [*_BEGUN, {"choices": [{"delta": {"content": " period is six weeks [1]."}, "finish_reason": None}]}]


@pytest.mark.parametrize("before", [_BEGUN, _LATE])
@pytest.mark.parametrize(
    "told",
    [json.dumps(_OVER), json.dumps({"error": _OVER}, indent=1), json.dumps([{"error": _OVER}]),
     "Internal Server Error", "<html>504 Gateway Time-out</html>"],
)  # fmt: skip
async def test_an_error_that_is_no_event_ends_no_answer(before: list[Any], told: str) -> None:
    async def send(body: object) -> AsyncIterator[bytes]:
        async for line in _send(*before):
            yield line
        yield f"{told}\n".encode()

    async with PROVIDER.open(3, send=send) as (_, _, model):
        with pytest.raises(ModelUnavailable, match="overloaded" if "{" in told else "reported an error"):
            await call(model, "stream")


@pytest.mark.parametrize(
    ("finish", "counted", "known", "too_long", "count"),
    [
        ("length", 0, False, True, 1),
        ("length", 0, True, True, 1),
        ("length", None, True, True, 1),
        ("length", None, False, True, 3),
        ("length", 288, True, False, 3),
        ("stop", None, True, True, 1),
        ("stop", None, False, False, 1),
        (None, None, True, True, 1),
    ],
)
async def test_a_reply_without_a_word_may_mean_that_the_window_is_full(
    finish: str | None, counted: int | None, known: bool, too_long: bool, count: int
) -> None:
    async def stay_silent(body: dict[str, Any]) -> AsyncIterator[bytes]:
        if finish:
            yield b"data: " + json.dumps({"choices": [{"delta": {}, "finish_reason": finish}]}).encode() + b"\n\n"
        if counted is not None:
            usage = {"prompt_tokens": 4000, "completion_tokens": counted}
            yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"

    def send(body: dict[str, Any]) -> AsyncIterator[bytes] | None:
        return stay_silent(body) if len(str(body["messages"])) > 2000 else None

    async with PROVIDER.open(3, send=send) as (server, _, model):
        if known:
            await call(model, "stream")
        server.requests.clear()
        with pytest.raises(ModelError) as caught:
            await call(model, "stream", messages=[*MESSAGES, Message("user", "x" * 5000)])
        assert isinstance(caught.value, ContextTooLong) == too_long
        assert len(server.requests) == count
        if counted is None and not known:
            with pytest.raises(ModelError, match=r"empty reply|before it wrote a word"):
                await call(model, "stream", messages=[*MESSAGES, Message("user", "x" * 3000)])


@pytest.mark.parametrize("before", [_OPENED, _BEGUN])
async def test_an_error_in_a_field_of_its_own_ends_no_answer(before: list[Any]) -> None:
    async def send(body: object) -> AsyncIterator[bytes]:
        async for line in _send(*before, *_OPENED):
            yield line
        yield b'error: {"code":400,"message":"the request exceeds the available context size"}\n\n'
        yield b"data: [DONE]\n\n"

    async with PROVIDER.open(3, send=send) as (_, _, model):
        with pytest.raises(ContextTooLong):
            await call(model, "stream")


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ('{"result": @}', 1),
        ('{"type": "object", "properties": {"kind": {"type": "string"}}}', 2),
        ("{}", 2),
        ('{"kind": "good", "certain": true, "count": 1, "parts": "[{\\"label\\": \\"a\\", \\"weight\\": 0.5}]"}', 1),
        ('{"kind": "good", "certain": true, "count": 1, "parts": [{"label": "a", "weight": 50}]}', 1),
        ('{"kind": "good", "certain": true, "count": 1, "parts": [{"label": "a", "weight": 5}]}', 2),
    ],
)
async def test_a_judgement_that_can_be_read_is_read_and_nothing_else_is_one(written: str, count: int) -> None:
    class Lenient(Judgement):
        kind: Literal["good", "bad"] = "bad"
        certain: bool = False
        count: int = 0

    async with PROVIDER.open(3) as (server, _, model):
        server.behaviour.replies = [written.replace("@", JUDGEMENT), JUDGEMENT]
        judged = await model.judge(ASK, Lenient, Sink())
        assert judged.kind == "good"
        assert [part.weight for part in judged.parts] in ([], [0.5])
        assert len(server.requests) == count


async def test_blanks_that_a_format_allows_are_paid_for_once() -> None:
    def answer(body: dict[str, Any]) -> AsyncIterator[bytes] | None:
        blank = {"choices": [{"message": {"content": " \n" * 1000}, "finish_reason": "length"}]}
        return _send(blank) if "response_format" in body else None

    async with PROVIDER.open(3, send=answer) as (server, _, model):
        for _ in range(2):
            assert (await model.judge(ASK, Judgement, Sink())).kind == "good"
        limits = [body.get("max_tokens") or body.get("max_completion_tokens") for body in server.requests]
        assert limits == [limits[0]] * 3


@pytest.mark.parametrize(
    "told", [{"prompt_tokens_details": {"cached_tokens": 64}}, {"prompt_cache_hit_tokens": 64}, {"cached_tokens": 64}]
)
async def test_the_tokens_that_a_provider_knew_are_counted(told: dict[str, Any]) -> None:
    counted = {"prompt_tokens": 100.0, "completion_tokens": 20, **told}
    async with PROVIDER.open(3, habit=Habit("knows", "", "", body=lambda body: {**body, "usage": counted})) as opened:
        for how in ("judge", "act", "stream"):
            await call(opened[2], how, sink := Sink(), [Message("user", "The notice. Judge.")])
            assert [(used.input_tokens, used.cached_tokens) for used in sink.usage] == [(100, 64)]


@pytest.mark.parametrize(
    ("words", "times", "counts"),
    [
        # 5, 7,501, 13,501 and 8,000 tokens of ours.
        ("The notice. Judge. ", 1, {512: False}),
        ("The notice. Judge. ", 1500, {512: True, 3000: True, 4097: False, 4098: True, 4099: True, 6146: False}),
        ("The notice. Judge. ", 2700, {8191: False, 8192: True, 8194: True}),
        ("通知期間は六週間です。", 1000, {3000: True, 4001: False}),
    ],
)
async def test_a_prompt_that_the_server_has_cut_in_silence_is_noticed(
    words: str, times: int, counts: dict[int, bool]
) -> None:
    for counted, unread in counts.items():
        usage = {"prompt_tokens": counted, "completion_tokens": 20}
        small = Habit("small", "", "", body=lambda body, usage=usage: {**body, "usage": usage})  # type: ignore[misc]
        async with PROVIDER.open(3, habit=small) as (_, _, model):
            for how in ("judge", "act", "stream") if counted == 512 else ("act",):
                sink = Sink()
                await call(model, how, sink, [Message("user", words * times)])
                assert ([used.unread for used in sink.usage], counted) == ([unread], counted)
