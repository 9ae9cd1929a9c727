"""converse with a model: what it is asked with, and what of its reply is shown."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from langgraph.runtime import Runtime

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import ListedDocument
from domain.profile import GenerateKnobs, Profile
from nodes.context import Models
from nodes.converse.step import converse
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.nodes.recorded_model import RecordedModel


async def test_a_model_is_asked_as_the_profile_says_and_its_markers_are_taken_out(embedder: OnnxEmbedder) -> None:
    model = RecordedModel("Hello! [cite:abc] I look things up.")
    events: list[Any] = []
    runtime = make_runtime(embedder, events, Models(small=model))

    async def list_recent(*_: Any) -> list[ListedDocument]:
        return [ListedDocument("d", "Handbook", "handbook.md")]

    library = cast(Any, SimpleNamespace(list_recent=list_recent))
    runtime = Runtime(context=replace(runtime.context, library=library), stream_writer=events.append)
    profile = Profile(name="own", generate=GenerateKnobs(temperature=0.7, citation_style="chunk"))
    update = await converse(make_state("Hello!", profile, language="en"), runtime)
    assert update["answered_by"] == "recorded"
    assert "cite:" not in update["answer"]
    assert model.options["temperature"] == 0.7
    assert "Handbook" in model.prompts[0][0].content
    assert update["listed"] == ["d"]
