"""Tries a language model, and keeps it for a home folder: whether it writes with sources, judges and calls functions,
and how long that takes.

It reads two sample documents, 1,300 tokens: less than a turn shows it, enough to tell how fast it reads.
"""

import time
from collections.abc import Awaitable
from dataclasses import dataclass

from pydantic import BaseModel, Field, ValidationError

from app.adapters.chat.discovery import PORTS, find_servers, locate
from app.adapters.chat.providers import PACKAGES, split_name
from app.adapters.prices import read_prices
from app.chosen_models import ChosenModels
from app.samples import FOLDER
from app.settings import Settings, read_settings
from app.support.addresses import is_same_server
from app.support.toml_files import list_problems
from domain.errors import AskgraphError, ConfigurationError, InputError, explain
from domain.model_names import Attempt, KnownModels, Trial
from domain.ports.models import ChatModel, Tool
from domain.state import level_of
from domain.text.markers import strip_markers
from nodes.context import Ledger
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


class Judged(BaseModel):
    """How surely sources state an answer, to a model."""

    confidence: float = Field(ge=0, le=1)


@dataclass(frozen=True, slots=True)
class ModelChooser:
    """The models of a home folder."""

    settings: Settings

    async def describe(self) -> KnownModels:
        """Return what is used, and what could be."""
        tiers = {
            "writes": self.settings.model_large,
            "judges": self.settings.model_small,
            "verifies": self.settings.model_judge,
        }
        chosen = ChosenModels.read(self.settings.home)
        return KnownModels(
            used=tiers if any(self.settings.providers.values()) else {},
            address=self.settings.openai_base_url,
            chosen=chosen.model_large if chosen else None,
            found=await find_servers(),
        )

    async def try_model(
        self,
        name: str,
        address: str | None = None,
        key: str | None = None,
        *,
        keep: bool = False,
        is_owner: bool = False,
    ) -> Trial:
        """Ask the model three small questions. One that writes is kept for the next start if `keep`: it judges as well
        where it does that right and fast.

        The headers of the settings go to another server than theirs only if the caller `is_owner` of this machine.

        `name` may begin with the kind of a server on this machine, as in `ollama:qwen3:8b`. Raises `InputError`, and
        `ConfigurationError` for a name, key or address that cannot be used.
        """
        kind, _, model = name.partition(":")
        if kind in PORTS and model:
            name, address = model, address or locate(kind)
        provider = split_name(name)[0]
        if address and provider in PACKAGES:
            raise InputError(f"An address is that of a server that speaks OpenAI's protocol; {provider} has its own.")
        access = {f"{provider}_api_key": key, "openai_base_url": address}
        configured = self.settings.openai_base_url or "https://api.openai.com"
        is_theirs = bool(self.settings.model_headers) and is_same_server(address or configured, configured)
        sends_headers = is_owner or is_theirs or None
        try:
            choice = ChosenModels(
                model_large=name, model_small="none", model_judge="none", sends_headers=sends_headers, **access
            )
        except ValidationError as error:
            raise InputError(list_problems(error)) from error
        # As the choice will be read: an address that is named here gets no key from elsewhere.
        trial = await _try(read_settings(home=self.settings.home, **choice.as_settings()), name)
        if keep and trial.writes.problem is None:
            judging = name if trial.judges.problem is None and trial.judges.seconds <= FAST else "none"
            choice.model_small = choice.model_judge = judging
            choice.keep(self.settings.home)
        return trial


async def _try(settings: Settings, name: str) -> Trial:
    from app.adapters.chat.connections import Connections  # the SDKs take longer to import than a command to run

    connections = Connections(settings.providers, timeout=_PATIENCE, prices=read_prices(settings.prices))
    try:
        models = connections.connect({"large": name}, (), {})
        await connections.check()
        problem = await connections.find_problem()
        if models.large is None:
            raise ConfigurationError(f"{name} needs a key or an address.")
        # The first question also loads the model. It is asked whatever the list of models says: some are not complete.
        writes, text = await _write(models.large)
        if writes.problem is not None and problem:
            raise ConfigurationError(problem)
        if writes.problem is not None:
            unasked = Attempt("It was not asked.", 0.0)
            return Trial(writes, False, unasked, unasked)
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
    asked = "Judge how surely these sources state the answer. confidence: 1.0 where they do, 0.0 where they do not."
    whole = await model.judge(_show(asked, *SHOWN), Judged, Ledger())
    other = await model.judge(_show(asked, SHOWN[-1]), Judged, Ledger())
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
        problem = explain(error)
    return Attempt(problem, time.monotonic() - began)


def _show(asked: str, *names: str) -> Prompt:
    shown = [
        write('<source number="{number}" title="{name}">\n{text}\n</source>', number=number, name=name, text=text)
        for number, name in enumerate(names, 1)
        for text in [(FOLDER / name).read_text()]
    ]
    sources = Shown("\n\n".join(shown))
    return [instruct(asked), ask("{sources}\n\nQuestion: {question}", sources=sources, question=QUESTION)]
