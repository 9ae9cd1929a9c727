"""Reads what servers of OpenAI's protocol reply, whole or as a stream, into one form: words, thoughts, calls, an end.

Servers and templates differ. Thoughts come in fields of their own, between tags, or in channels; calls come as text or
as objects; chunks are null. What carries nothing is passed over; an error inside a reply is raised.
https://platform.openai.com/docs/api-reference/chat-streaming
"""

import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from typing import Any

import httpx2
import orjson

from app.adapters.bounded_http import OversizedResponse
from app.adapters.chat.ends import read_end
from app.adapters.chat.judgements import SEARCHED, find_objects
from app.adapters.chat.langchain import LONGEST_THOUGHTS
from app.adapters.sdk_errors import find_words
from domain.ports.models import UNSAID

LONGEST_LINE = 1_000_000
"""Bytes of one line of a stream, which is one chunk."""

_MOST_CALLS = 50
_LONGEST_CALLS = 200_000
"""Characters of the arguments of all calls. A reply with more of either has gone astray, and is ended."""
_MOST_MARKS = 200
"""Marks of a reply that are looked for, each of which takes time for all that follows. Replies have a dozen."""
_MOST_PARTS = 1000
_PIECE = 1000
"""Characters of thoughts that a stream passes on together."""
_REPEATED = (4, 20)
"""Characters with which a chunk begins again that tell a server that repeats: letters and more after them, and any."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
_COUNTS = ("prompt_tokens", "completion_tokens")
_KNOWN = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
"""Fields of the count of cached tokens of DeepSeek, Moonshot, and gateways to Anthropic."""
_LONGEST_MARK = 200
"""Characters at the end of a text among which an unfinished mark, or the end of a template, is looked for."""
_FAILED = ("error", "abort", "aborted", "cancelled")
"""Ends of a reply that its server broke off, of vLLM and SGLang among others."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Fields of thoughts, of which some servers send two with the same text."""
_SIGN = r"<\|[\w\"/.-]{1,40}\|?>|<\w{2,40}\|>|</?｜[^<>]{1,80}>|<(?:unused\d{1,4}|[be]os|pad|unk)>"
"""Tokens of chat templates, of any name: most models', Gemma's, DeepSeek's, and tokens of no meaning. None of them is a
word of a reply."""
_MARK = re.compile(
    r"(?P<tag><(?P<end>/)?(?:\w{1,20}:)?(?:think(?:ing)?|thoughts?|reasoning)>|\[(?P<end2>/)?THINK\]"
    r"|◁(?P<end3>/)?think▷|<\|(?:START|(?P<end4>END))_THINKING\|>|<\|channel>|<(?P<end5>channel)\|>)"
    # most, Mistral, Kimi, Cohere, Gemma
    r"|<\|channel\|>(?P<channel>\w++)[^<]*+(?:<\|constrain\|>\w*+)?<\|message\|>|<\|start\|>assistant"  # gpt-oss
    r"|(?P<turn><\|(?:eot_id|eom_id|eot|end_of_text|start_header_id|header_start|im_end|im_start|endoftext|user"
    r"|END_OF_TURN_TOKEN)\|>|<(?:end|start)_of_turn>|<\|turn>|<turn\|>|<｜(?:end▁of▁sentence|User)｜>"
    r"|(?:</s>\s*)?\[/?INST\])"  # Llama, ChatML, Gemma, DeepSeek, Mistral
    r"|(?P<role>(?:assistant|user|model)(?=\n|\Z)|### ?(?:Assistant|Human|Instruction|Response|User):)"
    rf"|(?P<sign>{_SIGN})"
)
_UNFINISHED = re.compile(
    r"(?:<\|channel\|>[^<]*(?:<\|constrain\|>\w*)?(?:<[^<>\s]{0,12})?|<[^<>\s]{0,44}|</?｜[^<>]{0,80}|<\|start\|>[a-z]{0,8}"
    r"|(?:</s>\s*)?\[/?(?:T?H?I?N?K?|I?N?S?T?)|◁/?\w{0,5}|#{1,2}|### ?[A-Z]?[a-z]{0,11}|"
    + "|".join(role[:end] for role in ("assistant", "user", "model") for end in range(len(role), 0, -1))
    + r")\Z"
)
"""What may be the beginning of a mark: it waits for the rest."""
_BARE = "analysis"
_NEXT_BARE = re.compile(r"assistant(?P<channel>analysis|commentary|final)")
"""gpt-oss' channels where a server has left their names and taken out the signs: the text begins with the first word of
the thoughts right behind the name."""
_CLOSING = re.compile(rf"(?:\s*(?:{_SIGN}|</s>|<end_of_turn>))+\s*\Z")
"""Signs of chat templates that servers leave at the end of a reply."""
_NAMED = re.compile(
    r"(?:<\|channel\|>|assistant)\w+ to=(?:functions\.)?(?P<a>[\w.-]+)[^{]{0,100}|<function=(?P<b>[\w.-]+)>"
    r"|<｜tool▁sep｜>(?P<c>[\w.-]+)[^{]{0,100}"
)
"""A call as text whose name stands before its arguments: of gpt-oss, Qwen Coder and Llama, DeepSeek."""


class ThoughtAloudError(ValueError):
    """What was passed on as words were thoughts, whose opening tag stood in the prompt."""


class ServerError(Exception):
    """An error of the server inside a reply of status 200."""

    def __init__(self, said: object) -> None:
        self.body = said if isinstance(said, dict) else {"message": str(said)}
        super().__init__(find_words(self.body) or str(self.body))
        codes = [str(value) for name, value in self.body.items() if name.endswith(("code", "status"))]
        # Without a status it is the server's own, after which asking again may help; LM Studio says so of a wrong path.
        other = (
            404 if "Unexpected endpoint" in str(self) else 422 if self.body.get("error_type") == "validation" else 500
        )
        self.status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), other)


class _Splitter:
    """Tells words from thoughts in the text of one reply."""

    def __init__(self, *, opened: bool) -> None:
        """`opened` tells that replies of the model begin within thoughts, as far as is known."""
        self.closed_only = False
        """True once thoughts have ended that no tag in the reply had opened."""
        self._unsure = self._thinks = opened
        self._ended = self._framed = self._bare = False
        self.goes_on = False
        """True once thoughts have come in a field of their own: their end may stand in the text."""
        self.over = False
        """True once the model has begun the next turn of the conversation, which nobody has asked for."""
        self._begun, self._words, self._held = False, "", ""
        self._marks = 0

    def feed(self, text: str, *, last: bool = False) -> Iterator[tuple[bool, str]]:
        """Yield what can be told by now, each part with whether it is thoughts."""
        self._held += "" if self.over else text
        if not self._begun and not last and _BARE.startswith(self._held):
            return
        if not self._begun and (found := re.match(_BARE + r"(?=\w)", self._held)):
            self._held = self._held[found.end() :]
            self._bare = self._framed = self._thinks = True
            self._unsure = False
        self._begun = True
        while self._bare and (name := _NEXT_BARE.search(self._held)):
            yield from self._pass(self._held[: name.start()])
            self._bare = self._thinks = name["channel"] != "final"
            self._held = self._held[name.end() :]
        while not self._bare and self._marks < _MOST_MARKS and (mark := _MARK.search(self._held)):
            before, after = self._held[: mark.start()], self._held[mark.end() :]
            ends = any(mark[name] for name in ("end", "end2", "end3", "end4", "end5"))
            is_sign = bool(mark["sign"]) or "|" in mark[0] or "｜" in mark[0]
            begins = _UNFINISHED.match(self._held, mark.start()) and len(after) < _LONGEST_MARK
            if not last and (begins or (ends and not self._thinks and not after)):
                return
            self._marks += 1
            if mark["channel"]:
                yield from self._pass(before)
                self._framed, self._thinks, self._unsure = True, mark["channel"] != "final", False
            elif (mark["turn"] or (mark["role"] and self._ends_turn(before, after))) and not self._is_code(before):
                if self._unsure and before.strip():
                    self._thinks = self._unsure = False
                self._framed = True
                yield from self._pass(before)
                if self.spoke and not self._thinks:
                    self.over, after = True, ""
            elif mark["tag"] and ends and (self._thinks or self._stands_alone(before, after, is_sign)):
                aloud = self._unsure or not self._thinks
                self.closed_only = self.closed_only or aloud
                if aloud and self.spoke:
                    raise ThoughtAloudError
                self._thinks, self._ended = True, True
                yield from self._pass(before)
                self._thinks = self._unsure = False
            elif mark["tag"] and not ends and self._opens(before, is_sign):
                yield from self._pass(before if self.spoke or before.strip() else "")
                self._thinks, self._unsure = True, False
            elif is_sign and not self._is_code(before):
                # What is not told yet may be thoughts or words.
                after = before + after if self._unsure else after
                yield from self._pass("" if self._unsure else before)
            else:
                yield from self._pass(before + mark[0])
            self._held = after
        end = max(0, len(self._held) - _LONGEST_MARK)
        waiting = _CLOSING.search(self._held, end) or (None if last else _UNFINISHED.search(self._held, end))
        ready = len(self._held) if waiting is None else waiting.start()
        if self._bare and not last:
            ready = max(0, len(self._held) - len("assistantcommentary"))
        # Where a tag in the prompt has opened thoughts, only their end tells them from a reply without any.
        if last or not self._unsure:
            before, self._held = self._held[:ready], "" if last else self._held[ready:]
            yield from self._pass(before)

    def finish(self, *, full: bool) -> Iterator[tuple[bool, str]]:
        """Yield the rest. A reply that was `full` may have ended within thoughts."""
        yield from self.feed("", last=full)
        self._thinks = self._thinks and not self._unsure
        yield from self.feed("", last=True)

    @property
    def spoke(self) -> bool:
        """True once there are words."""
        return bool(self._words.strip())

    def _stands_alone(self, before: str, after: str, is_sign: bool) -> bool:
        """Return True for a tag that ends thoughts which a prompt had opened, or which came in a field of their own: a
        sign, one on a line of its own, or one right behind a word, as no prose speaks of it; none of these in code."""
        last = (self._words + before)[-1:]
        is_glued = last.isalnum() or last in (*".!?…。", ")")
        alone = is_sign or self.goes_on or is_glued or (last in ("", "\n") and after[:1] in ("", "\n"))
        return alone and not self._ended and not self._is_code(before)

    def _ends_turn(self, before: str, after: str) -> bool:
        """Return True where the name of a role is the header of a turn whose signs a server has taken out: at the
        beginning, or behind the end of a sentence, with at most line feeds between."""
        words = (self._words + before).rstrip("\n")
        return words[-1] in '.!?…。)]*"`' if words else bool(after)

    def _opens(self, before: str, is_sign: bool) -> bool:
        """Return True for a tag that opens thoughts: the first of the reply, a sign, one that begins a line, and any
        after thoughts in tags."""
        words = self._words + before
        later = is_sign or self._ended or words.endswith("\n")
        return not words.strip() or (later and not self._thinks and not self._is_code(before))

    def _is_code(self, before: str) -> bool:
        """Return True where what follows `before` stands in code, which may speak of the marks."""
        words = self._words + before
        is_code = words.count("```") % 2 == 1 or words.rpartition("\n")[2].count("`") % 2 == 1
        return is_code and (self._unsure or not self._thinks)

    def _pass(self, text: str) -> Iterator[tuple[bool, str]]:
        if not self._thinks:
            text = text if self._words or not (self._ended or self._framed) else text.lstrip()
            self._words += text
        if text:
            yield self._thinks, text


class ReplyReader:
    """Reads one reply."""

    def __init__(self, *, opened: bool = False, offered: Collection[str] = ()) -> None:
        """`offered` has the names of the tools that the model may call."""
        self.finish: str | None = None
        """Why the reply ended, in OpenAI's words; None as long as nobody has said so."""
        self.usage: dict[str, Any] | None = None
        self.thought = False
        """True once the reply has thoughts, or has been charged for some."""
        self._splitter = _Splitter(opened=opened)
        self._offered = offered
        self.calls: list[dict[str, Any]] = []
        """The calls in the field for them."""
        self._texts: list[str] = []
        self._length = self._called = 0
        """Characters of the text, and of the arguments of calls."""
        self._repeats = False
        """True where each chunk has all text so far."""
        self._refuses = False

    @property
    def text(self) -> str:
        """The text as it came."""
        return "".join(self._texts)

    @property
    def closed_only(self) -> bool:
        """True where the reply had begun within thoughts."""
        return self._splitter.closed_only

    @property
    def said(self) -> bool:
        """True once the reply has words or calls."""
        return self._splitter.spoke or bool(self.calls)

    def read(self, chunk: object) -> list[dict[str, str]]:
        """Return the words and thoughts of a chunk, or of a whole reply, as parts of LangChain's content.

        Raises `ServerError` and `ThoughtAloudError`.
        """
        if not isinstance(chunk, dict):
            return []  # keeps a connection alive
        choices = chunk.get("choices")
        choice: Any = next(iter(choices), None) if isinstance(choices, list) else None
        choice = choice if isinstance(choice, dict) else {}
        told = "" if choices else find_words(chunk)
        failed = choice.get("finish_reason") in _FAILED and "The reply ended with an error."
        error = chunk.get("error") or choice.get("error") or told or failed
        if error and self.finish is None:  # what follows the end takes nothing back
            raise ServerError(error if isinstance(error, dict) else {**chunk, "message": error})
        self._read_usage(chunk.get("usage"))
        whole = None if "delta" in choice and self._texts else choice.get("message")
        said = choice.get("delta") or whole or {"content": choice.get("text")}
        said = said if isinstance(said, dict) else {}
        self._refuses = self._refuses or bool(said.get("refusal"))
        if finish := _spell_finish(choice.get("finish_reason")):
            self.finish = "refusal" if self._refuses else finish
        self._read_calls(said)
        parts = [(True, thought) for name in _THOUGHTS if (thought := _join(said.get(name)))][:1]
        self._splitter.goes_on = self._splitter.goes_on or bool(parts)
        content = said.get("content")
        # Of Workers AI, which decodes a judgement.
        content = json.dumps(content) if isinstance(content, dict) and "text" not in content else content
        for part in content[:_MOST_PARTS] if isinstance(content, list) else [content]:
            if isinstance(part, dict) and (thought := _join(part.get("thinking") or part.get("reasoning"))):
                parts.append((True, thought))
            elif text := self._drop_repeated(_join(part)):
                self._texts.append(text)
                self._length += len(text)
                parts += self._splitter.feed(text)
        if self._splitter.over:
            self.finish = "refusal" if self._refuses else "stop"
        self.thought = self.thought or any(is_thought for is_thought, _ in parts)
        return [_show(*part) for part in parts]

    def end(self) -> list[dict[str, str]]:
        """Return the rest of the words and thoughts, where the reply has ended."""
        self.finish = self.finish or ("refusal" if self._refuses else "stop")
        return [_show(*part) for part in self._splitter.finish(full=read_end(self.finish) == "full")]

    def list_calls(self) -> list[dict[str, Any]]:
        """Return the calls of offered tools in OpenAI's form, also those that the model wrote as text."""
        calls: dict[str, dict[str, Any]] = {}
        for number, call in enumerate(self.calls or (find_calls(self.text, self._offered) if self._offered else [])):
            given = call.get("id")
            # Nine letters and digits, as Mistral's models want them.
            name = given if isinstance(given, str) and given and given not in calls else f"call{number:05}"
            calls[name] = {"name": call["name"], "arguments": _unwrap(call["arguments"]) or "{}"}
        return [{"id": name, "type": "function", "function": function} for name, function in calls.items()]

    def _drop_repeated(self, text: str) -> str:
        """Return what is new in a chunk: some servers send all text so far in each, or once more at the end."""
        so_far = self._length
        if not (_REPEATED[0] <= so_far <= len(text)) or not text.startswith(self.text):
            return text
        # A reply may well begin with the same few letters twice.
        if not self._repeats and so_far < _REPEATED[1] and (len(text) == so_far or not _LETTERS.search(text)):
            return text
        self._repeats = True
        return text[so_far:]

    def _read_usage(self, usage: object) -> None:
        if isinstance(usage, dict) and all(isinstance(usage.get(key), int | float) for key in _COUNTS):
            details = {key: value for key, value in usage.items() if isinstance(value, dict)}
            known = next((usage[key] for key in _KNOWN if isinstance(usage.get(key), int)), None)
            told = {} if known is None else {"prompt_tokens_details": {"cached_tokens": known}}
            self.usage = {**{key: int(usage[key]) for key in _COUNTS}, **told, **details}
            self.thought = self.thought or bool(details.get("completion_tokens_details", {}).get("reasoning_tokens"))

    def _read_calls(self, said: dict[str, Any]) -> None:
        found = said.get("tool_calls")
        for each in found if isinstance(found, list) else [{"function": said.get("function_call")}]:
            function = each.get("function") if isinstance(each, dict) else None
            if not isinstance(function, dict):
                continue
            name, arguments = function.get("name"), function.get("arguments")
            written = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
            if self._called > _LONGEST_CALLS or (name and len(self.calls) == _MOST_CALLS):
                self.finish = self.finish or "length"
                return
            self._called += len(written)
            if isinstance(name, str) and name:
                called = _find_name(name, self._offered)
                self.calls.append(
                    {"id": each.get("id"), "index": each.get("index"), "name": called, "arguments": written}
                )
            elif self.calls:
                same = [call for call in self.calls if call["index"] == each.get("index")]
                (same or self.calls)[-1]["arguments"] += written


def _join(value: object) -> str:
    """Return the text of a part of a message: a string, an object with one, or a list of such."""
    if isinstance(value, list):
        return "".join(map(_join, value))
    if isinstance(value, dict):
        return _join(value.get("text") or value.get("value"))
    return value if isinstance(value, str) else ""


def _spell_finish(reason: object) -> str:
    """Return why a reply ended; empty where it goes on, which some servers say with a word."""
    reason = reason.get("type") if isinstance(reason, dict) else reason  # of SGLang
    said = str(reason or "")
    return "" if said.lower() in ("null", "none") else said


def _find_name(name: str, offered: Collection[str]) -> str:
    """Return the name of the offered tool that is meant: templates leave signs behind it, and put a kind before it."""
    meant = re.sub(r"<\|.*|:\d+$", "", name, flags=re.DOTALL).strip().removeprefix("functions.")
    return name if name in offered or meant not in offered else meant


def _unwrap(written: str) -> str:
    """Return arguments that were encoded or sent twice as they were meant."""
    try:
        value, end = json.JSONDecoder().raw_decode(written)
    except ValueError:
        return written
    if isinstance(value, str):
        return _unwrap(value) if value.lstrip()[:1] == "{" else written
    return written[:end] if written[end:].strip() == written[:end].strip() else written


def _show(is_thought: bool, text: str) -> dict[str, str]:
    return {"type": "thinking", "thinking": text} if is_thought else {"type": "text", "text": text}


def find_calls(text: str, offered: Collection[str]) -> list[dict[str, Any]]:
    """Return the calls of tools that stand in the text of a reply, which some servers do not take out."""
    text, calls = text[-SEARCHED:], []
    for each in find_objects(text):
        listed = each.get("tool_calls")
        for call in listed if isinstance(listed, list) else [each]:
            call = call.get("function", call) if isinstance(call, dict) else {}
            call = call if isinstance(call, dict) else {}
            calls.append((call.get("name"), call.get("arguments", call.get("parameters"))))
    named = list(_NAMED.finditer(text))[:_MOST_CALLS]
    for mark, end in zip(named, [*(mark.start() for mark in named[1:]), len(text)], strict=False):
        written = text[mark.end() : end]
        pieces = (piece.partition(">") for piece in written.split("<parameter=")[1:])
        parameters = {name: value.partition("</parameter>")[0].strip() for name, _, value in pieces}
        calls.append((mark["a"] or mark["b"] or mark["c"], parameters or find_objects(written)))
    return [
        {"name": name, "arguments": json.dumps(given[0] if isinstance(given, list) else given)}
        for named, given in calls[:_MOST_CALLS]
        if isinstance(named, str) and (name := _find_name(named, offered)) in offered and given
    ]


def sum_usage(parts: Iterable[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return what several requests have used together; None where nobody has counted."""
    known = [part for part in parts if part]
    return {**known[-1], **{key: sum(part[key] for part in known) for key in _COUNTS}} if known else None


def load_json(written: bytes) -> Any:
    """Read JSON, which may hold half of a surrogate pair, whose other half may come with the next chunk, and bytes of
    half a character."""
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        return json.loads(written.decode("utf-8-sig", errors="replace"))


class _Lines:
    """Cuts a body into chunks: events with one `data` line each or several, or JSON, on one line or on several.
    https://html.spec.whatwg.org/multipage/server-sent-events.html"""

    def __init__(self) -> None:
        self.done = False
        """True once the server has said that nothing more comes."""
        self._rest = bytearray()
        self._event: list[bytes] = []
        """The lines of data of an event that is not complete."""
        self._returned = False
        """True where the last byte was a carriage return, whose line feed may follow."""
        self._others: list[bytes] = []
        self.events = False
        """True once there was an event."""

    def feed(self, received: bytes, *, last: bool = False) -> Iterator[Any]:
        """Yield the chunks that are complete."""
        # Not `splitlines`, which also splits at separators inside a JSON string.
        returned, self._returned = self._returned, received[-1:] == b"\r"
        received = received[1:] if returned and received[:1] == b"\n" else received
        *lines, rest = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            line, self._rest = bytes(self._rest + line), bytearray()
            yield from self._read(line.strip())
        self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            raise OversizedResponse("A line of the stream is too long.")
        if last:
            yield from self._read(bytes(self._rest).strip())
            yield from self._read(b"")
            if body := b"\n".join(self._others).strip():
                yield from self._read_others(body)

    def _read_others(self, body: bytes) -> Iterator[Any]:
        """Yield what stands in the lines that are no events: a reply, or behind events an error."""
        try:
            chunks = load_json(body)
            chunks = chunks if isinstance(chunks, list) else [chunks]  # of Gemini
        except ValueError as error:
            try:  # JSON on each line
                chunks = list(map(load_json, filter(None, self._others)))
            except ValueError:
                said = body.decode(errors="replace")[:500]
                if not self.events:
                    raise ValueError(f"This is no JSON: {said}") from error
                chunks = [{"error": said}]
        yield from chunks

    def _read(self, line: bytes) -> Iterator[Any]:
        data = line[5:].strip() if line.startswith(b"data:") else b""
        if line.startswith(b"error:") and line[6:].lstrip().startswith(b"{"):  # older versions of llama.cpp
            data = b'{"error":%b}' % line[6:]
        if self._event and data not in (b"", b"[DONE]"):
            self._event.append(data)
            return
        if self._event and (data or not line):
            written, self._event = b"\n".join(self._event), []
            yield load_json(written)
        if data == b"[DONE]":
            self.done = True
        elif data.startswith(b"{"):
            self.events = True
            try:
                chunk = load_json(data)
            except ValueError:
                self._event = [data]  # the next line may go on with it
                return
            yield chunk
        elif not data and not line.startswith((b"data:", b"event:", b"id:", b"retry:", b":")):
            self._others.append(line)


def read_whole(response: httpx2.Response, reader: ReplyReader) -> dict[str, Any]:
    """Return a reply in OpenAI's form, also one that came as events though none were asked for."""
    parts = [part for chunk in _Lines().feed(response.content, last=True) for part in reader.read(chunk)]
    parts += reader.end()
    if calls := reader.list_calls():
        # The words may be the calls themselves.
        parts = [part for part in parts if reader.calls or part["type"] == "thinking"]
    message = {"role": "assistant", "content": parts, "tool_calls": calls}
    return {"choices": [{"index": 0, "message": message, "finish_reason": reader.finish}], "usage": reader.usage}


async def read_stream(response: httpx2.Response, reader: ReplyReader) -> AsyncIterator[dict[str, Any]]:
    """Yield the chunks of a reply in OpenAI's form, also of one that came as a whole.

    A finish reason ends it, `[DONE]`, or the end of the body, where that can be told from a cut connection.
    """
    lines, ended, opened, thoughts, left = _Lines(), False, False, "", LONGEST_THOUGHTS

    def show(parts: list[dict[str, str]], finish: str | None = None) -> dict[str, Any] | None:
        """Return what is to be passed on: thoughts in few pieces, and nothing that is empty. At the end LangChain puts
        all together, in a time that grows with the square of their number and leaves no turn to others."""
        nonlocal opened, thoughts, left
        text = "".join(part.get("text", "") for part in parts)
        thoughts += "".join(part.get("thinking", "") for part in parts)[: left - len(thoughts)]
        ready, thoughts = (thoughts, "") if finish or len(thoughts) >= min(_PIECE, left) else ("", thoughts)
        left -= len(ready)
        usage, reader.usage = reader.usage, None
        if opened and not (text or ready or finish or usage):
            return None
        opened = True
        content = [_show(True, ready), _show(False, text)] if ready else text
        choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": finish}
        return {"choices": [choice], "usage": usage}

    async for received in response.aiter_bytes():
        for chunk in lines.feed(received):
            parts = reader.read(chunk)
            ends = reader.finish is not None and not ended
            ended = ended or ends
            if shown := show([*parts, *reader.end()], reader.finish) if ends else show(parts):
                yield shown
        if lines.done:
            break
    for chunk in lines.feed(b"", last=True):
        if shown := show(reader.read(chunk)):
            yield shown
    framed = "content-length" in response.headers or response.headers.get("transfer-encoding") == "chunked"
    if not ended and (lines.done or framed or reader.finish):
        reader.finish = reader.finish or (UNSAID if lines.events and not lines.done else None)
        if shown := show(reader.end(), reader.finish):
            yield shown
