"""What servers of OpenAI's protocol do otherwise than OpenAI, as public reports tell, one entry of `HABITS` each.

`Behaviour.habit` names one. All replies say the same, so that one test reads them all
(`tests/adapters/models/test_habits.py`), of which the list in `docs/models.md` is made.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from tests.contracts.chat_model import Judgement

Json = dict[str, Any]

THOUGHT = 'Maybe {"kind": "bad"}? Nobody is told this.'
WORDS = "The notice period is six weeks [1]."
JUDGEMENT = Judgement(kind="good", certain=True, count=1, parts=[], reason="", format="").model_dump_json()
CALL = {"query": "notice period"}
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}

SERVERS = ("OpenAI", "Azure", "Ollama", "vLLM", "llama.cpp", "LM Studio", "TGI", "LiteLLM", "OpenRouter", "others")


def _keep(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Habit:
    """One habit of some servers: it changes what a plain reply would be."""

    name: str
    says: str
    """For the list."""
    servers: str
    """Where it was seen."""
    refuses: Callable[[Json], str | Json | None] = lambda body: None
    """Returns the message of the refusal of a request, or its whole body."""
    status: int = 400
    text: Callable[[str], str] = _keep
    """Of the words, whole or streamed."""
    message: Callable[[Json], Json] = _keep
    """Of the message of a whole reply, and of each delta."""
    body: Callable[[Json], Any] = _keep
    """Of a whole reply, and of each chunk."""
    lines: Callable[[list[bytes]], list[bytes]] = _keep
    """Of the lines of a stream."""
    finish: Callable[[Json, str], str | None] = lambda body, finish: finish
    swaps: bool = False
    """Streams where a whole reply is asked for, and the other way round."""
    stays_open: bool = False

    def refuse(self, body: Json) -> str | None:
        """Return the body of a refusal; None where the request is answered."""
        said = self.refuses(body)
        told = {"error": {"message": said, "code": self.status}} if isinstance(said, str) else said
        return json.dumps(told) if told else None

    async def answer(self, body: Json) -> AsyncIterator[bytes]:
        """Yield the body of the reply."""
        offers, wants_json = bool(body.get("tools")), "Judge." in str(body["messages"])
        finish = self.finish(body, "tool_calls" if offers else "stop")
        text = self.text(JUDGEMENT if wants_json else WORDS) if finish != "length" else ""
        if "To call a function" in str(body["messages"]):
            text = json.dumps({"name": "search", "arguments": CALL})
        message: Json = {"role": "assistant", "content": text}
        if offers and finish != "length":
            function = {"name": "search", "arguments": json.dumps(CALL)}
            message |= {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        if body.get("stream", False) == self.swaps:
            yield json.dumps(self._make("message", self.message(message), finish)).encode()
            return
        parts = [{"content": text[at : at + 5]} for at in range(0, len(text), 5)]
        deltas = [message] if message.get("tool_calls") else [{"role": "assistant", "content": ""}, *parts]
        chunks = [self._make("delta", self.message(delta), None) for delta in deltas]
        chunks += [self._make("delta", {}, finish), self.body({"choices": [], "usage": USAGE})]
        sent = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
        for line in self.lines([*sent, b"data: [DONE]\n\n"][: -2 if self.stays_open else None]):
            yield line
        if self.stays_open:
            await asyncio.sleep(30)

    def _make(self, name: str, message: Json, finish: str | None) -> Any:
        return self.body({"id": "x", "choices": [{"index": 0, name: message, "finish_reason": finish}], "usage": USAGE})


def _think(opening: str, closing: str) -> Callable[[str], str]:
    return lambda text: f"{opening}{THOUGHT}{closing}{text}"


def _reason(field: str) -> Callable[[Json], Json]:
    return lambda message: {**message, field: THOUGHT} if message.get("content") or "tool_calls" in message else message


def _call(**changed: Any) -> Callable[[Json], Json]:
    def change(message: Json) -> Json:
        calls = [{**call, **changed} for call in message.get("tool_calls", [])]
        return {**message, "tool_calls": calls} if calls else message

    return change


def _write_call(form: str) -> Callable[[Json], Json]:
    written = form.replace("@", json.dumps(CALL))
    return lambda message: {"role": "assistant", "content": written} if message.get("tool_calls") else message


def _wants_thoughts(body: Json) -> str | None:
    sent = [m.get("reasoning_content") for m in body["messages"] if m.get("tool_calls")]
    return None if {*sent} <= {THOUGHT} else "The `reasoning_content` in the thinking mode must be passed back."


def _has(body: Json, *keys: str) -> bool:
    return any(key in body for key in keys)


def _limit(body: Json) -> int:
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 10**9)


def _split_content(message: Json) -> Json:
    return {**message, "content": [{"type": "text", "text": message["content"]}]} if message.get("content") else message


def _split_thinking(message: Json) -> Json:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}
    return (
        _split_content(message) | {"content": [thinking, *_split_content(message).get("content", [])]}
        if message.get("content")
        else message
    )


def _end_with_words(lines: list[bytes]) -> list[bytes]:
    *before, words, end = lines[:-2]
    last = json.loads(words[6:])
    last["choices"][0]["finish_reason"] = json.loads(end[6:])["choices"][0]["finish_reason"]
    return [*before, b"data: " + json.dumps(last).encode() + b"\n\n", *lines[-2:]]


def _refuse_history(body: Json, pattern: str, says: str) -> str | None:
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or []]
    return None if all(re.fullmatch(pattern, each) for each in ids) else says


def _into_words(inserted: str, at: int) -> Callable[[str], str]:
    """A judgement has no words to put it between."""
    return lambda text: text if text.startswith("{") else text[:at] + inserted + text[at:]


def _change_content(change: Callable[[str, str], str]) -> Callable[[list[bytes]], list[bytes]]:
    """Changes the content of each chunk, given all text so far."""

    def change_lines(lines: list[bytes]) -> list[bytes]:
        changed, so_far = [], ""
        for line in lines:
            chunk = json.loads(line[6:]) if line[6:7] == b"{" else {}
            delta = chunk["choices"][0]["delta"] if chunk.get("choices") else {}
            so_far += delta.get("content") or ""
            delta["content"] = change(so_far, delta.get("content") or "")
            changed.append(b"data: " + json.dumps(chunk).encode() + b"\n\n" if delta["content"] else line)
        return changed

    return change_lines


def _spread(line: bytes) -> bytes:
    if not line.startswith(b"data: {"):
        return line
    spread = json.dumps(json.loads(line[6:]), indent=1).encode()
    return b"data: " + spread.replace(b"\n", b"\ndata: ") + b"\n\n"


_ROLES = "conversation roles must alternate user and assistant roles except for tool calls and results"

HABITS = (
    Habit("plain", "nothing else than OpenAI", "OpenAI Azure"),
    Habit(
        "think-tags",
        "thoughts between tags",
        "Ollama vLLM llama.cpp LM Studio TGI",
        text=_think("<think>\n", "\n</think>\n\n"),
    ),
    Habit(
        "closing-tag-only",
        "thoughts whose opening tag stands in the prompt",
        "vLLM llama.cpp TGI",
        text=_think("", "\n</think>\n\n"),
    ),
    Habit(
        "closing-tag-glued", "thoughts whose opening tag stands in the prompt", "LM Studio", text=_think("", "</think>")
    ),
    Habit(
        "thoughts-go-on",
        "thoughts in their field whose end stands in the text",
        "vLLM others",
        text=_think("", ' "</think>\n'),
        message=_reason("reasoning"),
    ),
    Habit(
        "channels",
        "gpt-oss' channels, with their signs or without",
        "vLLM llama.cpp LM Studio",
        text=_think("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ),
    Habit(
        "channels-bare",
        "gpt-oss' channels, with their signs or without",
        "others",
        text=_think("analysis", "assistantfinal"),
    ),
    Habit(
        "signs-around",
        "Gemma's channels, with their opening sign or without",
        "vLLM others",
        text=_think("<|channel>thought\n", "\n<channel|>"),
    ),
    Habit(
        "closing-sign-only",
        "Gemma's channels, with their opening sign or without",
        "vLLM",
        text=_think("thought\n", "<channel|>"),
    ),
    Habit("named-tags", "thoughts between tags", "vLLM others", text=_think("<mm:think>", "</mm:think>")),
    Habit(
        "signs-between",
        "signs of the template in the text, and what follows them",
        "vLLM others",
        text=_into_words(
            "<|channel>thought\nNobody is told this.<channel|><|tool_response><｜▁pad▁｜><|/x|><turn_end|><unused11><pad>",
            10,
        ),
    ),
    Habit(
        "signs-of-deepseek",
        "DeepSeek's signs around the text",
        "vLLM others",
        text=lambda text: (
            f"<｜begin▁of▁sentence｜><｜Assistant｜>{text}<｜end▁of▁sentence｜><｜begin▁of▁sentence｜>Nobody is told this [1]."
        ),
    ),
    Habit("think-again", "thoughts between tags", "vLLM others", text=_into_words(f"\n<think>{THOUGHT}</think>\n", 10)),
    Habit(
        "next-turn",
        "signs of the template in the text, and what follows them",
        "Ollama llama.cpp",
        text=lambda text: (
            f"{text}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nSick leave?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nNobody is told this [1]."
        ),
    ),
    Habit(
        "names-of-roles",
        "signs of the template in the text, and what follows them",
        "llama.cpp others",
        text=lambda text: f"assistant\n\n{text}assistant\n\nNobody is told this [1].user\n\nNor this [1].",
    ),
    Habit(
        "headings-of-roles",
        "signs of the template in the text, and what follows them",
        "llama.cpp others",
        text=lambda text: f"### Assistant: {text}\n\n### Human: Nobody is told this?\n### Assistant: It is [1].",
    ),
    Habit(
        "name-of-a-role",
        "signs of the template in the text, and what follows them",
        "llama.cpp others",
        text=lambda text: f"{text}assistant",
    ),
    Habit(
        "next-turn-of-mistral",
        "signs of the template in the text, and what follows them",
        "others",
        text=lambda text: f"{text}</s> [INST] Sick leave? [/INST] Nobody is told this [1].",
    ),
    Habit(
        "boxed",
        "signs of the template in the text, and what follows them",
        "vLLM others",
        text=lambda text: f"<|begin_of_box|>{text}<|end_of_box|>",
    ),
    Habit("cumulative", "all text so far again", "others", lines=_change_content(lambda so_far, new: so_far)),
    Habit(
        "repeated",
        "all text so far again",
        "others",
        lines=_change_content(lambda so_far, new: new if not so_far or new else so_far),
    ),
    Habit("spread", "lines that end with CR, events on several", "others", lines=lambda lines: [*map(_spread, lines)]),
    Habit(
        "half-bytes",
        "NUL and half characters",
        "llama.cpp others",
        lines=lambda lines: [line.replace(b'"content": " six', b'"content": "\xe2\x82 six') for line in lines],
    ),
    Habit(
        "thoughts-come-back",
        "thoughts asked for with the calls that they led to",
        "others",
        refuses=_wants_thoughts,
        message=lambda message: message | ({"reasoning_content": THOUGHT} if message.get("tool_calls") else {}),
    ),
    Habit(
        "reasoning_content",
        "thoughts in `reasoning_content`",
        "vLLM llama.cpp LM Studio LiteLLM",
        message=_reason("reasoning_content"),
    ),
    Habit("reasoning", "thoughts in `reasoning`", "Ollama vLLM OpenRouter", message=_reason("reasoning")),
    Habit("thinking", "thoughts in `thinking`", "Ollama", message=_reason("thinking")),
    Habit("thinking-parts", "content as a list, with thoughts", "others", message=_split_thinking),
    Habit(
        "template-end",
        "signs of the template in the text, and what follows them",
        "llama.cpp vLLM",
        text=lambda text: text + "<|im_end|>\n",
    ),
    Habit(
        "thinks-long",
        "thoughts that use up the limit, `length`",
        "vLLM llama.cpp LM Studio Ollama",
        finish=lambda body, finish: "length" if _limit(body) < 3000 else finish,
    ),
    Habit(
        "thinks-long-502",
        "thoughts that use up the limit, `length`",
        "LiteLLM",
        status=502,
        refuses=lambda body: "returned a successful but empty completion." if _limit(body) < 3000 else None,
    ),
    Habit("content-parts", "content as a list of parts", "others", message=_split_content),
    Habit(
        "null-chunks",
        "chunks that are null or no object, empty data lines",
        "others",
        lines=lambda lines: [b"data: null\n\n", b'data: "ping"\n\n', b"data:\n\n", b"data: ping\n\n", *lines],
    ),
    Habit(
        "comments",
        "comments that keep the connection alive",
        "OpenRouter",
        lines=lambda lines: [b": OPENROUTER PROCESSING\n\n", *lines],
    ),
    Habit(
        "empty-choices",
        "a first chunk without choices",
        "Azure",
        lines=lambda lines: [b'data: {"choices": [], "prompt_filter_results": []}\n\n', *lines],
    ),
    Habit(
        "no-last-newline",
        "a last line without its end",
        "others",
        lines=lambda lines: [*lines[:-3], lines[-3].rstrip()],
    ),
    Habit(
        "crlf",
        "lines that end with CR, events on several",
        "others",
        lines=lambda lines: [_spread(line).replace(b"\n", b"\r\n") for line in lines],
    ),
    Habit(
        "cr",
        "lines that end with CR, events on several",
        "others",
        lines=lambda lines: [line.replace(b"\n", b"\r") for line in lines],
    ),
    Habit("swapped", "JSON where a stream is asked for, events where none is", "others LiteLLM", swaps=True),
    Habit("no-finish", "`[DONE]` without a finish reason", "vLLM others", finish=lambda body, finish: None),
    Habit("no-done", "no `[DONE]`", "others", lines=lambda lines: lines[:-1]),
    Habit("body-ends", "neither a finish reason nor `[DONE]`", "others", lines=lambda lines: lines[:-3]),
    Habit("stays-open", "a connection that stays open", "others", stays_open=True),
    Habit("other-finish", "other words for the end", "TGI OpenRouter", finish=lambda body, finish: "eos_token"),
    Habit("no-usage", "no count of tokens", "llama.cpp others", body=lambda body: {**body, "usage": None}),
    Habit(
        "odd-usage",
        "counts that are no numbers",
        "others",
        body=lambda body: {**body, "usage": {"prompt_tokens": "n/a"}},
    ),
    Habit(
        "nul",
        "NUL and half characters",
        "llama.cpp others",
        text=lambda text: text.replace("six", "\0 \ud83d\ude00 \ud83d six"),
    ),
    Habit(
        "object-arguments",
        "arguments as an object, or encoded twice",
        "TGI llama.cpp",
        message=_call(function={"name": "search", "arguments": CALL}),
    ),
    Habit(
        "encoded-twice",
        "arguments as an object, or encoded twice",
        "Ollama vLLM",
        message=_call(function={"name": "search", "arguments": json.dumps(json.dumps(CALL))}),
    ),
    Habit(
        "signs-in-names",
        "signs in the names of functions",
        "vLLM others",
        message=_call(function={"name": "functions.search<|channel|>commentary", "arguments": json.dumps(CALL)}),
    ),
    Habit("empty-ids", "calls without an id or index", "Ollama LiteLLM", message=_call(id="")),
    Habit(
        "function_call",
        "calls in the old field",
        "others",
        message=lambda message: (
            {"role": "assistant", "content": None, "function_call": message["tool_calls"][0]["function"]}
            if message.get("tool_calls")
            else message
        ),
    ),
    Habit(
        "call-in-tags",
        "calls as text, in tags",
        "LM Studio vLLM llama.cpp",
        message=_write_call('<tool_call>\n{"name": "search", "arguments": @}\n</tool_call>'),
    ),
    Habit(
        "call-as-json",
        "calls as text, as JSON",
        "Ollama vLLM",
        message=_write_call('```json\n{"name": "search", "parameters": @}\n```'),
    ),
    Habit(
        "call-of-mistral",
        "calls as text, after `[TOOL_CALLS]`",
        "vLLM llama.cpp",
        message=_write_call('[TOOL_CALLS][{"name": "search", "arguments": @}]'),
    ),
    Habit(
        "call-of-coder",
        "calls as text, in XML",
        "vLLM LM Studio",
        message=_write_call("<function=search>\n<parameter=query>\nnotice period\n</parameter>\n</function>"),
    ),
    Habit(
        "call-in-channel",
        "calls as text, in a channel",
        "vLLM llama.cpp",
        message=_write_call("<|channel|>commentary to=functions.search <|constrain|>json<|message|>@<|call|>"),
    ),
    Habit(
        "json-in-reasoning",
        "a judgement in the field for thoughts",
        "vLLM LM Studio",
        message=lambda message: (
            {"content": None, "reasoning_content": message["content"]}
            if "{" in str(message.get("content")) and len(message["content"]) > 9
            else message
        ),
    ),
    Habit(
        "decoded-judgement",
        "a judgement as an object",
        "others",
        message=lambda message: (
            {**message, "content": json.loads(message["content"])}
            if len(message.get("content") or "") > 9 and message["content"].startswith("{")
            else message
        ),
    ),
    Habit(
        "streams-only",
        "replies as streams only, or whole only",
        "others",
        refuses=lambda body: None if body.get("stream") else "This model only support stream mode.",
    ),
    Habit(
        "whole-only",
        "replies as streams only, or whole only",
        "OpenAI",
        refuses=lambda body: {"detail": "The model is unsupported for streaming."} if body.get("stream") else None,
    ),
    Habit(
        "json-lines",
        "JSON on each line in place of events",
        "others",
        lines=lambda lines: [line[6:-1] for line in lines if line.startswith(b"data: {")],
    ),
    Habit(
        "one-list",
        "JSON on each line in place of events",
        "others",
        lines=lambda lines: [b"[" + b",\r\n".join(line[6:-2] for line in lines if line.startswith(b"data: {")) + b"]"],
    ),
    Habit(
        "ends-as-objects",
        "other words for the end",
        "others",
        body=lambda body: {
            **body,
            "choices": [
                {**each, "finish_reason": each["finish_reason"] and {"type": each["finish_reason"]}}
                for each in body["choices"]
            ],
        },
    ),
    Habit(
        "no-system",
        "no system role",
        "vLLM llama.cpp",
        refuses=lambda body: "System role not supported" if '"system"' in json.dumps(body["messages"]) else None,
    ),
    Habit(
        "alternating-500",
        "no system role",
        "llama.cpp",
        status=500,
        refuses=lambda body: _ROLES if '"system"' in json.dumps(body["messages"]) else None,
    ),
    Habit(
        "no-system-200",
        "no system role",
        "LM Studio",
        status=200,
        refuses=lambda body: "System role not supported" if '"system"' in json.dumps(body["messages"]) else None,
    ),
    Habit(
        "no-json_object",
        "schemas only",
        "LM Studio",
        refuses=lambda body: (
            "'response_format.type' must be 'json_schema' or 'text'"
            if (body.get("response_format") or {}).get("type") == "json_object"
            else None
        ),
    ),
    Habit(
        "no-response_format",
        "no JSON formats",
        "others",
        refuses=lambda body: "Bad Request" if _has(body, "response_format") else None,
    ),
    Habit(
        "format-500",
        "no JSON formats",
        "llama.cpp others",
        status=500,
        refuses=lambda body: "Internal error" if _has(body, "response_format") else None,
    ),
    Habit(
        "no-tools",
        "no tools",
        "Ollama",
        refuses=lambda body: "gemma does not support tools" if _has(body, "tools") else None,
    ),
    Habit(
        "tools-404",
        "no tools",
        "OpenRouter",
        status=404,
        refuses=lambda body: "No endpoints found that support tool use." if _has(body, "tools") else None,
    ),
    Habit(
        "signatures",
        "calls that come back without their signature",
        "others",
        refuses=lambda body: _refuse_history(body, "signed", "Function call is missing a thought_signature"),
    ),
    Habit(
        "ids-of-nine",
        "calls whose ids are not of nine letters",
        "vLLM LiteLLM",
        refuses=lambda body: _refuse_history(body, "[a-zA-Z0-9]{9}", "Tool call id was c but must have a length of 9"),
    ),
    Habit("end-with-words", "the last words beside the finish reason", "vLLM", lines=_end_with_words),
    Habit(
        "no-stream_options",
        "no `stream_options`",
        "others",
        status=422,
        refuses=lambda body: (
            {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted", "input": {}}]}
            if _has(body, "stream_options")
            else None
        ),
    ),
    Habit(
        "no-temperature",
        "no temperature",
        "OpenAI Azure",
        refuses=lambda body: (
            "Unsupported value: 'temperature' does not support 0.0" if _has(body, "temperature") else None
        ),
    ),
    Habit(
        "new-limit",
        "`max_completion_tokens` only",
        "OpenAI Azure",
        refuses=lambda body: (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
            if _has(body, "max_tokens")
            else None
        ),
    ),
    Habit(
        "old-limit",
        "`max_tokens` only",
        "Ollama TGI LM Studio",
        status=422,
        refuses=lambda body: (
            "max_completion_tokens: Extra inputs are not permitted" if _has(body, "max_completion_tokens") else None
        ),
    ),
    Habit(
        "no-effort",
        "no `reasoning_effort`",
        "vLLM others",
        message=_reason("reasoning"),
        refuses=lambda body: "Invalid reasoning value" if _has(body, "reasoning_effort") else None,
    ),
)


def write_list() -> str:
    """Return the kinds of habits, each with the servers that are known for it, in Markdown."""
    known: dict[str, str] = {}
    for habit in HABITS[1:]:
        known[habit.says] = f"{known.get(habit.says, '')} {habit.servers}"
    return "\n".join(f"- {says}: {', '.join(each for each in SERVERS if each in seen)}" for says, seen in known.items())
