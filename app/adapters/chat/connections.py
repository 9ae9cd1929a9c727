"""Connects the language models of a deployment. Importing this module imports the SDKs, which takes 1.5 s: import it
where a model is configured."""

import asyncio
import importlib
import re
import time
from collections.abc import Collection, Mapping, Sequence

import openai
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from app.adapters.chat.langchain import BOUNDED, LangChainChat, describe_misfit
from app.adapters.chat.openai import OpenAIChat
from app.adapters.chat.providers import PACKAGES, Access, split_name
from app.adapters.prices import PriceTable
from domain.errors import ConfigurationError
from domain.model_names import NO_MODEL
from domain.ports.models import ChatModel
from domain.profile import ModelKnobs, Profile
from nodes.context import TIERS, Models, Tier

RECHECK = 30.0
"""Minimum seconds between two checks of a server that had a problem, however often health is requested."""


class Connections:
    """The connected models. Each is constructed once, however many tiers and modes name it, and receives no request
    before `check`."""

    def __init__(
        self, access: Mapping[str, Access], *, timeout: float, prices: PriceTable, seeing: Collection[str] = ()
    ) -> None:
        """`access` is keyed by provider: `openai` and the names in `PACKAGES`. `timeout` is in seconds, for one
        judgement with all retries, or for one piece of a streamed reply. `seeing` names models that see pictures, in
        addition to those that are known to."""
        self._seeing = seeing
        self._access = access
        self._timeout = timeout
        self._prices = prices
        self._http = openai.DefaultAsyncHttpxClient(timeout=timeout, **BOUNDED)
        self._models: dict[str, LangChainChat] = {}
        self._found: dict[str, str | None] = {}
        self._checked = 0.0

    def connect(self, tiers: Mapping[Tier, str], fallbacks: Sequence[str], modes: Mapping[str, ModelKnobs]) -> Models:
        """Connect the models of each tier, the fallbacks and the models that modes name.

        A tier is left out, and its steps judge locally, if its name is one for no model, or if its model uses OpenAI's
        protocol and neither key nor address is set for that. If that leaves no tier and there is no fallback, nothing
        is connected.

        Raises `ConfigurationError` if a named provider has no key or its package is not installed.
        """
        used = {
            tier: name
            for tier, name in tiers.items()
            if name not in NO_MODEL and (self._access.get("openai") or split_name(name)[0] != "openai")
        }
        if not used and not fallbacks:
            return Models()
        for tier, name in used.items():
            self._open(name, f"ASKGRAPH_MODEL_{tier.upper()}")
        for name in fallbacks:
            self._open(name, "ASKGRAPH_MODEL_FALLBACKS")
        for mode, knobs in modes.items():
            for tier in TIERS:
                if (named := getattr(knobs, tier)) not in (None, *NO_MODEL):
                    self._open(named, f"models.{tier} of the mode {mode!r}")
        serving: dict[tuple[Tier, str], ChatModel] = {}
        for name, connected in self._models.items():
            for tier in TIERS:
                model = connected
                if tier == "judge" and isinstance(model, OpenAIChat):
                    # A judge that reasons needs more time.
                    model = model.with_effort("low")
                serving[tier, name] = model
        return Models(
            **{tier: serving[tier, name] for tier, name in used.items()},
            fallbacks=tuple(serving["large", name] for name in fallbacks),
            named=serving,
        )

    async def check(self) -> None:
        """Ask each server, if that is free of charge, whether it knows the key and the model. A problem stays with the
        model until it answers a call."""
        await self._check(self._models)

    async def find_problem(self) -> str | None:
        """Return the first problem as a sentence for users, with the models that it affects; None if there is none.

        A problem that `check` found is checked again, at most every 30 s, if no call has been made since.
        """
        unasked = {
            name: model
            for name, model in self._models.items()
            if model.circuit.problem and model.circuit.problem == self._found.get(name)
        }
        if unasked and time.monotonic() >= self._checked + RECHECK:
            await self._check(unasked)
        found = {name: problem for name, model in self._models.items() if (problem := model.circuit.find_problem())}
        if not found:
            return None
        problem = next(iter(found.values()))
        names = [name for name, other in found.items() if other == problem]
        named = re.search(rf"(?<![\w-]){re.escape(split_name(names[0])[1])}(?![\w-])", problem)
        return problem if named else f"{', '.join(names)}: {problem}"

    async def _check(self, models: Mapping[str, LangChainChat]) -> None:
        self._checked = time.monotonic()
        found = await asyncio.gather(*(model.check() for model in models.values()))
        for (name, model), problem in zip(models.items(), found, strict=True):
            model.circuit.problem = self._found[name] = problem

    def describe(self) -> dict[str, str]:
        """Describe the state of each model by name."""
        return {name: model.circuit.describe() for name, model in self._models.items()}

    def find_misfits(self, modes: Mapping[str, Profile], tiers: Mapping[Tier, str]) -> list[str]:
        """Return a sentence for each model that writes for some mode and cannot take its length, its pictures, or a
        temperature that somebody chose for it."""
        found: dict[tuple[str, str], list[str]] = {}
        for mode in modes.values():
            tier = mode.generate.model
            model = self._models.get(getattr(mode.models, tier) or tiers[tier])
            if model is None:
                continue
            usual, longest = type(mode.generate).model_fields["temperature"].default, model.find_longest_reply()
            if mode.generate.pictures and not model.sees:
                found.setdefault(("pictures", model.name), []).append(mode.name)
            if mode.generate.temperature != usual and not model.takes_temperature():
                found.setdefault(("temperature", model.name), []).append(mode.name)
            if longest is not None and longest < mode.generate.answer_tokens:
                name = f"{model.name} (at most {longest:,} tokens)"
                found.setdefault(("answer_tokens", name), []).append(mode.name)
        return [describe_misfit(name, knob, modes) for (knob, name), modes in found.items()]

    def unpriced(self) -> list[str]:
        """Return the models without a price."""
        return [name for name, model in self._models.items() if self._prices.price(model.name, 0, 0, 0) is None]

    async def close(self) -> None:
        """Close the connections."""
        for model in self._models.values():
            await model.aclose()
        await self._http.aclose()

    def _open(self, name: str, setting: str) -> None:
        """Construct the model of this name, taken from `setting`, unless that is done."""
        if name not in self._models:
            self._models[name] = model = self._construct(name, setting)
            model.sees |= name in self._seeing

    def _construct(self, name: str, setting: str) -> LangChainChat:
        provider, model = split_name(name)
        access = self._access.get(provider)
        if not access:
            key = "OPENAI_API_KEY or OPENAI_BASE_URL" if provider == "openai" else PACKAGES[provider].key
            raise ConfigurationError(f"{setting} is {name!r}, which needs {key}. Set it, or name another model.")
        if provider == "openai":
            return OpenAIChat(
                model,
                api_key=access.key,
                base_url=access.base_url,
                headers=access.headers,
                timeout=self._timeout,
                http=self._http,
                prices=self._prices,
            )
        package = PACKAGES[provider]
        address = {"base_url": access.base_url} if access.base_url else {}
        try:
            client: BaseChatModel = getattr(importlib.import_module(package.module), package.name)(
                model=model, api_key=access.api_key or "none", timeout=self._timeout, max_retries=0, **address
            )
        except ImportError as error:
            raise ConfigurationError(
                f"{setting} is {name!r}, whose package is not installed. Run: pip install 'askgraph[{provider}]'"
            ) from error
        except ValidationError as error:
            problems = "; ".join(problem["msg"] for problem in error.errors())
            raise ConfigurationError(f"{setting} is {name!r}, which cannot be used: {problems}.") from error
        return LangChainChat(name, client, timeout=self._timeout, prices=self._prices, key=package.key)
