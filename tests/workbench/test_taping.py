"""Nothing that a node may call escapes the tape."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import openai
import pytest
from typing_extensions import is_protocol

from app.adapters.chat.openai import OpenAIChat
from app.wiring.judges import build_local_judges
from app.workbench.tapes.tape import Call, Tape
from app.workbench.tapes.tape_codec import pack, unpack
from app.workbench.tapes.tapes import decode_tape, encode_tape
from app.workbench.tapes.taping import Player, describe, fill, play, record
from domain.documents import Box, Line, Passage
from domain.errors import CalculationError, NotOnTape
from domain.ports.calculation import Calculation, LookUp
from domain.ports.embedding import Embedder
from domain.ports.judgement import Judges
from domain.ports.models import TokenCounter
from domain.ports.unit_scoring import UnitScorer
from domain.scope import Scope
from nodes.context import Context, Models
from tests.contracts.chat_model import MESSAGES, SEARCH, Sink
from tests.wire.openai import serve_openai

NO_CALLS = (TokenCounter,)
"""What depends on nothing but its arguments, and is asked again in a replay."""


def holds_port(hint: Any) -> bool:
    if is_dataclass(hint):
        return any(map(holds_port, get_type_hints(hint).values()))
    return is_protocol(hint) or any(map(holds_port, get_args(hint)))


def make(hint: Any) -> Any:
    """Something of this type, with a stand-in for each port in it. Judges are code: the ports are what they call."""
    if hint is Judges:
        return build_local_judges(make(Embedder), make(UnitScorer))
    if is_dataclass(hint):
        parts = {name: each for name, each in get_type_hints(hint).items() if holds_port(each)}
        return hint(**{name: make(each) for name, each in parts.items()})  # type: ignore[operator]
    if is_protocol(hint):
        return SimpleNamespace(**dict.fromkeys(get_type_hints(hint), "name"), stands_for=hint)
    arguments = get_args(hint)
    origin = get_origin(hint)
    if origin is Literal:
        return arguments[0]
    if origin is tuple:
        return tuple(make(each) for each in arguments if each is not ...)
    if origin is not None and issubclass(origin, Mapping):
        return {make(arguments[0]): make(arguments[1])}
    return next((make(each) for each in arguments if holds_port(each)), "name")


def list_ports(value: Any, path: str = "") -> dict[str, Any]:
    """Each port within, by where it is."""
    parts: Mapping[Any, Any] = {}
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        parts = {part.name: getattr(value, part.name) for part in fields(value) if holds_port(hints[part.name])}
    elif isinstance(value, Mapping):
        parts = value
    elif isinstance(value, tuple):
        parts = dict(enumerate(value))
    else:
        return {path: value}
    return {place: port for key, part in parts.items() for place, port in list_ports(part, f"{path}.{key}").items()}


@pytest.fixture
def context() -> Context:
    made = make(Context)
    assert isinstance(made, Context)
    return made


def test_every_port_of_a_context_is_recorded_and_played(context: Context) -> None:
    given = list_ports(context)
    calls = {place for place, port in given.items() if port.stands_for not in NO_CALLS}
    assert {
        ".library",
        ".judges.router.embedder",
        ".judges.grader.unit_scorer",
        ".rerankers.name",
        ".models.large",
        ".models.fallbacks.0",
    } <= calls
    tape = Tape(ports=unpack(pack(describe(context))), calls=[], events=[])
    player = Player(tape, "run")
    for taped in (record(context, []), play(tape, player, context.tokens, context.judges), fill(context, player)):
        ports = list_ports(taped)
        assert set(ports) == set(given)
        for place in calls:
            assert not isinstance(ports[place], SimpleNamespace | str), f"{place} is called past the tape"


async def test_a_calculation_is_played_without_a_worker(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.workbench.tapes.taping._read_step", lambda: 1)
    passage = Passage(
        "c1", 0, "d1", "Rain", "2024 | 7", 4, 12, lines=(Line(4, 12, 2, Box(x=1, y=2, width=3, height=4)),)
    )
    replies: list[Calculation | CalculationError] = [
        Calculation(("n", "s"), ((1, 2.5), (None, "1")), True, (passage,), "A note."),
        CalculationError("No table."),
    ]

    class Calculating:
        async def calculate(self, scope: Scope, sql: str, document_ids: Sequence[str]) -> Calculation:
            reply = replies.pop(0)
            if isinstance(reply, CalculationError):
                raise reply
            return reply

        async def look_up(self, scope: Scope, question: str, document_ids: Sequence[str]) -> LookUp | None:
            return LookUp(((passage, "2024 | 7"),), 0.9, "SELECT 7") if document_ids else None

    calls: list[Call] = []
    recorded = record(replace(context, calculator=Calculating()), calls).calculator
    assert recorded is not None
    found = await recorded.calculate(Scope("a"), "SELECT * FROM t1", ["d1"])
    with pytest.raises(CalculationError):
        await recorded.calculate(Scope("a"), "SELECT * FROM t2", ["d1"])
    looked_up = [await recorded.look_up(Scope("a"), "rain in 2024", documents) for documents in (["d1"], [])]
    encoded, _ = encode_tape(Tape(describe(context), calls, []))
    assert encoded is not None
    tape = decode_tape(encoded)
    played = play(tape, Player(tape, "run"), context.tokens, context.judges).calculator
    assert played is not None
    assert await played.calculate(Scope("a"), "SELECT * FROM t1", ["d1"]) == found
    with pytest.raises(CalculationError, match="No table"):
        await played.calculate(Scope("a"), "SELECT * FROM t2", ["d1"])
    assert [await played.look_up(Scope("a"), "rain in 2024", documents) for documents in (["d1"], [])] == looked_up
    with pytest.raises(NotOnTape):
        await played.calculate(Scope("a"), "SELECT 1", [])


async def test_a_tape_of_a_run_without_a_calculator_has_none(context: Context) -> None:
    tape = Tape(unpack(pack(describe(replace(context, calculator=None)))), [], [])
    assert play(tape, Player(tape, "run"), context.tokens, context.judges).calculator is None


async def test_calls_of_tools_are_taped_and_played_again(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.workbench.tapes.taping._read_step", lambda: 1)
    calls: list[Call] = []
    async with serve_openai() as server, openai.DefaultAsyncHttpxClient() as http:
        model = OpenAIChat("gpt-5-nano", api_key="key", base_url=server.base_url, timeout=5, http=http)
        recorded = record(replace(context, models=Models(large=model)), calls)
        assert recorded.models.large is not None
        reply = await recorded.models.large.act(MESSAGES, [SEARCH], sink := Sink(), max_tokens=100)
    encoded, _ = encode_tape(Tape(describe(recorded), calls, []))
    assert encoded is not None
    tape = decode_tape(encoded)
    played = play(tape, Player(tape, "run"), context.tokens, context.judges).models.large
    assert played is not None
    assert await played.act(MESSAGES, [SEARCH], again := Sink(), max_tokens=100) == reply
    assert reply.calls
    assert again.usage == sink.usage
    with pytest.raises(NotOnTape):
        await played.act(MESSAGES, [], Sink(), max_tokens=100)
