"""What is learnt of a server that speaks OpenAI's protocol, and of its model, from what they do.

What a server refuses is found by asking again without it, whatever the refusal says. Room for thoughts grows where a
reply ended among them.
"""

import json
import logging
import re
import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import openai
from langchain_core.exceptions import ContextOverflowError

from app.adapters.chat.langchain import LONGEST_THOUGHTS
from app.adapters.sdk_errors import LONGEST_MESSAGE, clean, find_words

logger = logging.getLogger("askgraph.models")

Body = dict[str, Any]

KEPT = 86_400.0
"""Seconds for which this is kept: server and model may be others by then."""
ROOM = (2000, 8000)
"""Tokens for thoughts beside the words: for a model that thinks, and where these were not enough."""

_OPTIONAL = {
    "json_schema": r"response.?format|json.?schema|structured.?output|grammar|sampler|guided",
    "json_object": r"response.?format|json.?object|json.?mode|structured.?output|grammar|sampler",
    "stream_options": "stream_options|include_usage",
    "temperature": "temperature",
    "minimal": "effort|reasoning|minimal",
    "reasoning_effort": "effort|reasoning",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
    "system": r"system.?(role|message|prompt|instruction)|developer|\broles?\b",
    "tools": "tool|function|grammar|sampler",
    "stream": r"\bto stream\b|stream(ing)?.{0,20}\b(not|un|only)|(not|un)\w*.{0,20}\bstream",
    "whole": r"stream",
}
"""What a request can do without, in the order in which it is left out, and how a refusal names it. Least is lost by the
first; system messages and tools are then written into the prompt, and a reply comes whole, or as a stream that is read
when it has ended."""
FORMATS = frozenset({"json_schema", "json_object"})
_SYSTEM = ("system", "developer")
_PAIRS = (FORMATS, {"minimal", "reasoning_effort"}, {"max_tokens", "max_completion_tokens"})
"""One takes the place of the other."""
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|too (long|large|many tokens)|max(imum)?\b.{0,40}(input|prompt|sequence)"
    r"|exceed.{0,60}(token|length|limit|context)|longer than|n_ctx|\binputs\b.{0,40}\bmust (be|have)\b"
    r"|\binput length|tokens?\b.{0,60}\bexceed",
    re.IGNORECASE,
)
_SPELT, _QUOTED = 2000, 300
"""Characters of a server's message that are looked at, and that readers get. Some repeat the whole request."""
_RATE = re.compile(r"rate.?limit|quota|(per|a) (minute|day)|budget", re.IGNORECASE)
"""Limits that have nothing to do with one prompt, though their messages speak of tokens."""
_FIGURE = re.compile(r"\b\d{1,9}\b")
_ASKED = re.compile(r"\blimit\W{1,3}(\d{1,9})\W{1,3}requested\W{1,3}(\d{1,9})", re.IGNORECASE)
"""A limit of tokens a minute, and what one request asks for, the reply's limit with it (Groq, OpenAI)."""
_NOTHING = re.compile(r"\bempty completion", re.IGNORECASE)
"""What gateways say in place of a reply that is empty, mostly because thoughts used up its limit (LiteLLM)."""
_REPLY = re.compile(r"max_\w{0,20}tokens|completion|output", re.IGNORECASE)
_MONEY = r"((?<!thinking.)budget(?!.?tokens)|quota|credit|balance|funds|usage.limit)"
_SPENT = re.compile(
    rf"(exceed|exhaust|insufficient|deplet|reached|used (up|all)|out of|not enough|over|\bno\b).{{0,40}}{_MONEY}"
    rf"|{_MONEY}.{{0,40}}(exceed|exhaust|insufficient|deplet|used up|too low)",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"rate.?limit|(per|a) (second|minute|hour|day)|retry|try again|resource has been exhausted", re.IGNORECASE
)
"""What is used up for a moment only, though some speak of a quota."""
_ELSEWHERE = (404, 405, 415, 501)
"""Statuses of gateways that find no server for what is in a request. They also mean a wrong name or address."""
_BREAKING = {*FORMATS, "tools"}
"""What some servers answer with status 500."""
_FILTERED = re.compile(
    r"content.?(filter|policy|management|exists.risk)|guardrail|(requires|blocked by) moderation|\bwas flagged\b"
    r"|data.inspection|inappropriate content|considered high.risk",
    re.IGNORECASE,
)
_CRASHED = re.compile(
    r"crash|out of memory|\boom\b|cuda error|(runner|process|worker).{0,40}(terminated|exited|died|no longer)"
    r"|unexpected eof",
    re.IGNORECASE,
)
_LOADS = re.compile(
    r"(?<!error )\bloading (the )?model\b|\bmodel\b.{0,200}\b(is|still|currently) (loading|being loaded)\b",
    re.IGNORECASE,
)
"""What llama.cpp, Ollama and Hugging Face say while they load; "error loading model" has ended."""
_MOST_THOUGHTS = 100
"""Replies whose thoughts are kept. Chosen: 2 MB at most, and longer than a run has calls."""
_BROKEN = 3
"""Replies of status 500 in a row, as many as a call makes, after which it is asked without a format once."""


def spell(error: openai.APIError) -> str:
    """Return all that the server says. It is for us to read: `tell` and `quote` are for people."""
    return (find_words(error.body) or error.message)[: 2 * _SPELT]


def tell(error: openai.APIError) -> str:
    """Return what the server says, for whoever runs the service."""
    return clean(spell(error), error)[:LONGEST_MESSAGE]


def quote(error: openai.APIError) -> str:
    """Return the server's own words behind a colon, for readers; nothing where there are none."""
    words = clean(find_words(error.body), error)[:_QUOTED].rstrip(".")
    return f": {words}" if words else ""


def is_too_long(error: openai.APIError) -> bool:
    """Return True where the error says that the prompt does not fit. A provider that is busy counts tokens, too."""
    status, said = getattr(error, "status_code", 0), spell(error)
    return (
        status == 413
        or bool(find_allowed(error))
        or (status != 429 and bool(_TOO_LONG.search(said)) and not _RATE.search(said))
    )


def find_allowed(error: openai.APIError) -> tuple[int, int] | None:
    """Return the tokens that a provider takes in a minute, and the larger number of one request; None where that is not
    what it refuses."""
    said = _ASKED.search(re.sub(r"(?<=\d),(?=\d{3})", "", spell(error)))
    return (int(said[1]), int(said[2])) if said and int(said[1]) < int(said[2]) else None


def find_smaller(error: openai.APIStatusError, sent: Body, wanted: int) -> int | None:
    """Return a smaller limit of tokens where the one that was sent does not fit beside the prompt: what is left, as far
    as the server's figures tell, or half. None where the prompt itself is too long, and where less than a quarter of
    what is wanted is left: then fewer sources are the better way."""
    limit, said = sent.get("max_tokens") or sent.get("max_completion_tokens") or 0, spell(error)
    figures = {int(each) for each in _FIGURE.findall(re.sub(r"(?<=\d),(?=\d{3})", "", said))}
    if error.status_code == 402:  # of what an account can afford
        left = max((each for each in figures if each < limit), default=0)
        return left if left * 4 >= wanted else None
    if allowed := find_allowed(error):
        left = limit - allowed[1] + allowed[0]
        return left if left * 4 >= wanted else None
    if not is_too_long(error) or not (limit in figures or _REPLY.search(said)):
        return None
    # The limit, and its sum with the prompt.
    figures -= {limit, *(each for each in figures if each - limit in figures)}
    window = max(figures, default=0)
    left = min((window - each for each in figures if 0 < window - each < limit), default=limit // 2)
    return left if left * 4 >= wanted else None


def is_spent(error: openai.APIStatusError) -> bool:
    """Return True where a budget or quota is used up, which no moment and no other request cures."""
    said = f"{error.code} {error.type}{spell(error)[:_QUOTED]}"
    is_spent = error.status_code in (400, 403, 429) and _SPENT.search(said) and not _PASSING.search(said)
    return error.status_code == 402 or error.code == "insufficient_quota" or bool(is_spent)


def is_crash(error: openai.APIError) -> bool:
    """Return True where the error says that the server has broken down, for which nothing in the request is a reason
    except its length."""
    return bool(_CRASHED.search(spell(error)[:_QUOTED]))


def is_loading(error: openai.APIStatusError) -> bool:
    """Return True where the error says that the server still loads the model."""
    return error.status_code >= 500 and bool(_LOADS.search(spell(error)[:_QUOTED]))


def is_filtered(error: openai.APIError) -> bool:
    """Return True where the error says that a filter has refused the prompt. What is not found is none: some accounts
    have filters of models."""
    return getattr(error, "status_code", 0) != 404 and bool(_FILTERED.search(f"{error.code} {spell(error)}"))


@dataclass(slots=True)
class Habits:
    """What is known by now. It is forgotten after a day."""

    thinks: bool = False
    """True once the model has thought, or refused a temperature."""
    old: bool = False
    """True for a server that may know only OpenAI's old name for the limit of tokens, as most do."""
    refused: set[str] = field(default_factory=set)
    """What requests have to do without, of `_OPTIONAL`."""
    taken: set[str] = field(default_factory=set)
    """What stood in a request that was answered."""
    longest: int = 0
    """Characters of the longest request that was answered."""
    crashed: int = 0
    """Characters of the last request at which the server broke down, or wrote no word."""
    hopeless: str = ""
    """What the server said of a request that nothing helped."""
    broken: int = 0
    """Replies of status 500, one after the other."""
    room: int = 0
    """Tokens for thoughts."""
    minute: tuple[int, float] | None = None
    """Tokens of a minute that one request exceeded, and the tokens of a character of its prompt."""
    opened: bool = False
    """True where replies begin within thoughts, because the tag that opens them stands in the prompt."""
    recalls: bool = False
    """True where the thoughts have to come back with the calls that they led to (DeepSeek, Kimi)."""
    thoughts: dict[str, str] = field(default_factory=dict)
    """Those of the last calls, by the id of the first call of a reply."""
    since: float = field(default_factory=time.monotonic)

    def fit(self, body: Body, without: AbstractSet[str], most: float) -> tuple[Body, set[str]]:
        """Return the request as the server takes it, with `most` tokens for the reply, and what of `_OPTIONAL` is in
        it."""
        sent, used = dict(body), set[str]()
        instruction = sent.pop("instruction", "")
        if "response_format" in sent:
            kind = next((kind for kind in ("json_schema", "json_object") if kind not in without), None)
            if kind is None:
                del sent["response_format"]
            elif kind == "json_object":
                sent["response_format"] = {"type": kind}
            used |= {kind} if kind else set()
        if instruction and "json_schema" not in used:
            sent["messages"] = _instruct(sent["messages"], instruction)
        if not self.thinks:
            sent.pop("reasoning_effort", None)
        elif sent.get("reasoning_effort") == "minimal":
            sent["reasoning_effort"] = "low" if "minimal" in without else "minimal"
            used |= {"minimal"} - without
        limit = sent.pop("max_completion_tokens", None) or sent.pop("max_tokens", None)
        names = ("max_tokens", "max_completion_tokens") if self.old else ("max_completion_tokens", "max_tokens")
        if limit and self.minute:
            left = round(self.minute[0] - self.minute[1] * len(str(sent["messages"])))
            most = min(most, left) if left * 4 >= limit else most
        if limit and (name := next((name for name in names if name not in without), None)):
            sent[name] = min(limit + max(self.room, ROOM[0] if self.thinks else 0), most)
        used |= {"stream" if sent["stream"] else "whole"} - without
        sent["stream"] = sent["stream"] != bool(without & {"stream" if sent["stream"] else "whole"})
        if not sent["stream"]:
            sent.pop("stream_options", None)
        for name in ("stream_options", "temperature", "reasoning_effort"):
            if name in without:
                sent.pop(name, None)
        if self.recalls:
            sent["messages"] = [
                {**m, "reasoning_content": self.thoughts.get(m["tool_calls"][0]["id"], "")}
                if m.get("tool_calls")
                else m
                for m in sent["messages"]
            ]
        if "tools" in without and "tools" in sent:
            sent["messages"] = _write_tools(sent["messages"], sent.pop("tools"))
        if "system" in without:
            sent["messages"] = _merge([{**m, "role": "user"} if m["role"] in _SYSTEM else m for m in sent["messages"]])
        used |= sent.keys() & _OPTIONAL.keys() - {"stream"}
        used |= {"system"} if any(message["role"] in _SYSTEM for message in sent["messages"]) else set()
        used |= {"pictures"} if any(_shows_pictures(message) for message in sent["messages"]) else set()
        return sent, used

    def note_reply(self, sent: Body, used: AbstractSet[str], left_out: AbstractSet[str], *, empty: bool) -> None:
        """Note that a request was answered, and what was left out for that."""
        if found := left_out - self.refused:
            logger.warning("The language model %s is asked without %s.", sent["model"], ", ".join(sorted(found)))
        self.refused |= left_out
        self.taken |= used
        self.thinks = self.thinks or "temperature" in left_out
        if not empty:
            self.longest, self.crashed = max(self.longest, len(str(sent["messages"]))), 0
        self.broken, self.hopeless = 0, ""

    def note_smaller(self, error: openai.APIStatusError, sent: Body) -> None:
        """Note of a refusal of too many tokens a minute what it tells of the next prompts."""
        if allowed := find_allowed(error):
            limit = sent.get("max_tokens") or sent.get("max_completion_tokens") or 0
            self.minute = allowed[0], max(0, allowed[1] - limit) / len(str(sent["messages"]))

    def note_calls(self, reply: Body) -> None:
        """Keep the thoughts of a reply that calls functions: some servers want them back."""
        message = reply["choices"][0]["message"]
        if message["tool_calls"]:
            thoughts = "".join(part.get("thinking", "") for part in message["content"])
            self.thoughts[message["tool_calls"][0]["id"]] = thoughts[:LONGEST_THOUGHTS]
            while len(self.thoughts) > _MOST_THOUGHTS:
                del self.thoughts[next(iter(self.thoughts))]

    def learns_to_recall(self, error: openai.APIStatusError) -> bool:
        """Return True where a refusal asks for the thoughts for the first time."""
        before, self.recalls = self.recalls, self.recalls or "reasoning_content" in spell(error)
        return self.recalls and not before

    def is_refusal(self, error: openai.APIStatusError, used: AbstractSet[str], tried: AbstractSet[str]) -> bool:
        """Return True where the request may be answered without something that is in it."""
        is_named = any(self._names(error, name) for name in used & _OPTIONAL.keys())
        if error.status_code == 500 and not is_loading(error):
            self.broken += not tried
            return self.broken % _BROKEN == 0 or is_named
        if is_spent(error) or is_crash(error) or spell(error) == self.hopeless:
            return False
        if error.status_code not in (400, 422):
            return is_named and error.status_code in _ELSEWHERE
        # Pictures are the likelier cause, and whoever shows them asks again without.
        is_open = not is_too_long(error) and "pictures" not in used
        return not is_filtered(error) and (is_named or is_open)

    def find_next(self, error: openai.APIStatusError, used: AbstractSet[str], tried: AbstractSet[str]) -> str | None:
        """Return what to leave out next: what the refusal names, or what was never answered; None if there is none."""
        left = [name for name in _OPTIONAL if name in used and name not in tried]
        named = [name for name in left if self._names(error, name)]
        some = _BREAKING if error.status_code >= 500 else _OPTIONAL.keys() - {"stream", "whole"}
        return next(iter(named or [name for name in left if name in some - self.taken]), None)

    def explain(self, sent: Body, error: openai.APIStatusError) -> Exception:
        """Return the error of a request that nothing helps. Of two that are alike, the longer one is too long."""
        self.hopeless, size = spell(error), len(str(sent["messages"]))
        if is_crash(error):
            return ContextOverflowError(error.message) if self._blames_length(size) else error
        if error.status_code in (400, 422) and 0 < self.longest < size and not is_filtered(error):
            return ContextOverflowError(error.message)
        return error

    def fills_window(self, sent: Body, usage: Body | None, *, full: bool) -> bool:
        """Return True where a reply without a word or thought comes of a prompt that leaves no room in the window: by
        the count of its tokens where there is one, else by the prompt's length. Call it once for each reply."""
        if full and usage and usage["prompt_tokens"]:
            return bool(usage["completion_tokens"] <= 1)
        size = len(str(sent["messages"]))
        if self.longest:
            return size > self.longest
        # A first reply may be empty for any reason, and a limit may have been spent on thoughts that are not shown.
        fills = full and self.room == ROOM[-1] and self._blames_length(size)
        self.room = 0 if fills else self.room  # more of it was no help
        return fills

    def _blames_length(self, size: int) -> bool:
        """Return True where a request failed that is longer than any that was answered, unless one as long had failed
        just before, and none was answered since: then its length was not the reason."""
        is_no_longer, self.crashed = 0 < size <= self.crashed, size
        return not is_no_longer and size > self.longest

    def finds_room(self, error: openai.APIStatusError, sent: Body) -> bool:
        """Return True where the error stands for an empty reply whose limit there is more room for."""
        has_limit = sent.get("max_tokens") or sent.get("max_completion_tokens")
        return bool(error.status_code >= 500 and has_limit and _NOTHING.search(spell(error))) and self.find_room()

    def find_room(self) -> bool:
        """Make more room for thoughts; False where there is no more."""
        self.thinks = True
        more = next((room for room in ROOM if room > self.room), None)
        self.room = more or self.room
        return more is not None

    @staticmethod
    def _names(error: openai.APIStatusError, name: str) -> bool:
        return error.param == name or bool(re.search(_OPTIONAL[name], spell(error), re.IGNORECASE))


def is_pair(one: str, other: str) -> bool:
    """Return True where one takes the place of the other."""
    return any({one, other} <= pair for pair in _PAIRS)


def _shows_pictures(message: Body) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(part.get("type") == "image_url" for part in content)


def _instruct(messages: list[Body], instruction: str) -> list[Body]:
    """Add an instruction to the system message: chat templates of local models allow only one."""
    first, *others = messages
    if first["role"] in _SYSTEM:
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *others]
    return [{"role": "system", "content": instruction}, *messages]


def _write_tools(messages: list[Body], tools: list[Body]) -> list[Body]:
    """Describe the tools in the prompt, and write calls and results as text."""
    described = "\n".join(json.dumps(tool["function"]) for tool in tools)
    written: list[Body] = []
    for message in messages:
        if calls := message.get("tool_calls"):
            said = "\n".join(json.dumps(_show_call(call["function"])) for call in calls)
            message = {"role": "assistant", "content": f"{message.get('content') or ''}\n{said}".strip()}
        elif message["role"] == "tool":
            message = {"role": "user", "content": f"Result of the call:\n{message['content']}"}
        written.append(message)
    return _instruct(_merge(written), f"{_CALLING}\n{described}")


_CALLING = (
    'To call a function, reply with nothing but JSON: {"name": NAME, "arguments": {...}}. You get its result in the '
    "next message. These are the functions:"
)


def _show_call(function: Body) -> Body:
    return {"name": function["name"], "arguments": json.loads(function["arguments"])}


def _merge(messages: list[Body]) -> list[Body]:
    """Join neighbours of one role: templates want user and assistant in turn."""
    merged: list[Body] = []
    for message in messages:
        before = merged[-1] if merged else {}
        if before.get("role") == message["role"] and isinstance(before["content"], str):
            content = message["content"]
            said = [{"type": "text", "text": before["content"]}, *content] if isinstance(content, list) else None
            merged[-1] = {**before, "content": said or f"{before['content']}\n\n{content}"}
        else:
            merged.append(message)
    return merged
