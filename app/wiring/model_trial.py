"""Tries a language model: whether it writes with sources, judges and calls functions, and how long that takes.

It reads two sample documents, 1,300 tokens: less than a turn shows it, enough to tell how fast it reads.
"""

import time
from collections.abc import Awaitable
from dataclasses import dataclass

from app.adapters.prices import read_prices
from app.model_choice import ModelChoice
from app.samples import FOLDER
from app.settings import Settings
from domain.errors import AskgraphError, ConfigurationError
from domain.ports.models import ChatModel, Tool
from domain.text.markers import strip_markers
from nodes.context import Ledger
from nodes.grade import step as grade
from nodes.grade.step import level_of
from nodes.prompting.messages import Prompt, Shown, ask, instruct, write

QUESTION = "How many days of holiday does an employee have?"
FACT = "30"
SHOWN = ("handbook.md", "calibration-procedure.md")
FAST = 6.0
"""Seconds of the two judgements up to which a model judges too: a turn may ask for both before its first word.
Chosen."""
_PATIENCE = 180.0
"""Seconds for a question: a laptop loads a model of 8 billion parameters, and reads with it, in one to two minutes."""
_TOKENS = 200


@dataclass(frozen=True, slots=True)
class Attempt:
    """One small question."""

    problem: str | None
    """Why the reply is of no use; None where it is."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What a model can do."""

    writes: Attempt
    cites: bool
    """True if it set a marker where its answer has a source. Answers without are still compared with the sources."""
    judges: Attempt
    calls: Attempt

    def choose(self, name: str, **access: str | None) -> ModelChoice:
        """Return the settings for this model: it judges as well where it does that right and fast."""
        judging = name if self.judges.problem is None and self.judges.seconds <= FAST else "none"
        return ModelChoice(model_large=name, model_small=judging, model_judge=judging, **access)


async def try_model(settings: Settings, name: str) -> Trial:
    """Ask the model three small questions.

    Raises `ConfigurationError` for a name, key or address that cannot be used.
    """
    from app.adapters.chat.connections import Connections  # the SDKs take longer to import than a command to run

    connections = Connections(settings.providers, timeout=_PATIENCE, prices=read_prices(settings.prices))
    try:
        models = connections.connect({"large": name}, (), {})
        await connections.check()
        problem = await connections.find_problem()
        if models.large is None or problem:
            raise ConfigurationError(problem or f"{name} needs --address or --with-key.")
        # The first question also loads the model.
        writes, text = await _write(models.large)
        judges = await _attempt(_judge(models.large))
        calls = await _attempt(_call(models.large))
        return Trial(writes, strip_markers(text) != text, judges, calls)
    finally:
        await connections.close()


async def _write(model: ChatModel) -> tuple[Attempt, str]:
    text = ""

    async def write() -> str | None:
        nonlocal text
        asked = "Answer in one sentence from these sources. After it put the number of its source, like [1]."
        async for part in model.stream(_show(asked, *SHOWN), Ledger(), temperature=0.0, max_tokens=_TOKENS):
            text += part
        return None if FACT in text else f"It answered: {' '.join(text.split())[:200] or 'nothing'}"

    return await _attempt(write()), text


async def _judge(model: ChatModel) -> str | None:
    """Show what answers, and what does not."""
    whole = await model.judge(_show(grade.PROMPT, *SHOWN), grade.Grading, Ledger())
    other = await model.judge(_show(grade.PROMPT, SHOWN[-1]), grade.Grading, Ledger())
    is_right = level_of(whole.confidence) == "high" and level_of(other.confidence) in ("low", "none")
    said = f"{whole.confidence} of sources that answer, {other.confidence} of one that does not"
    return None if is_right else f"As confidence it said {said}."


async def _call(model: ChatModel) -> str | None:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tool = Tool("search", "Search the documents of the team.", parameters)
    messages = [instruct("Call the function that finds what is asked."), ask(QUESTION)]
    reply = await model.act(messages, [tool], Ledger(), max_tokens=_TOKENS)
    called = any(call.name == "search" and call.arguments.get("query") for call in reply.calls)
    return None if called else f"It called nothing and said: {' '.join(reply.text.split())[:200]}"


async def _attempt(asked: Awaitable[str | None]) -> Attempt:
    began = time.monotonic()
    try:
        problem = await asked
    except AskgraphError as error:
        problem = error.message
    return Attempt(problem, time.monotonic() - began)


def _show(asked: str, *names: str) -> Prompt:
    shown = [
        write('<source number="{number}" title="{name}">\n{text}\n</source>', number=number, name=name, text=text)
        for number, name in enumerate(names, 1)
        for text in [(FOLDER / name).read_text()]
    ]
    sources = Shown("\n\n".join(shown))
    return [instruct(asked), ask("{sources}\n\nQuestion: {question}", sources=sources, question=QUESTION)]
