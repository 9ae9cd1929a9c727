"""Routing without a model: courtesies, talk, orders, and everything else goes to the documents."""

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.state import Route
from nodes.converse.local import LocalSmallTalk
from nodes.route.local.routing import LocalRouter, strip_courtesies

TALK = LocalSmallTalk()


@pytest.mark.parametrize(
    ("question", "route"),
    [
        ("Hello!", "conversational"),
        ("good morning", "conversational"),
        ("Thanks a lot for your help", "conversational"),
        ("ok, great, thank you", "conversational"),
        ("Goodbye", "conversational"),
        ("Who are you?", "conversational"),
        ("What can you do?", "conversational"),
        ("Are you a human?", "conversational"),
        ("Tell me a joke", "conversational"),
        ("How are you doing?", "conversational"),
        ("What's new?", "conversational"),
        ("what's new in the latest release", "needs_retrieval"),
        ("until when?", "needs_retrieval"),
        ("Transfer $50 to Anna", "out_of_scope"),
        ("Set an alarm for six", "out_of_scope"),
        ("Play the next song", "out_of_scope"),
        ("What's the weather like right now?", "out_of_scope"),
        ("What is the refund period?", "needs_retrieval"),
        ("How do I reset the device?", "needs_retrieval"),
        ("How do I block a lost company card?", "needs_retrieval"),
        ("Can I pay by credit card?", "needs_retrieval"),
        ("How do I turn off the alarm on the boiler?", "needs_retrieval"),
        ("Which hotels may I book for a business trip?", "needs_retrieval"),
        ("Who made the W2?", "needs_retrieval"),
        ("Do you ship to Norway?", "needs_retrieval"),
        ("Hi, what is the warranty of the W2?", "needs_retrieval"),
        ("Thanks! And what about the W3?", "needs_retrieval"),
        ("gm-assistant: can I cut off a sound effect while it's playing?", "needs_retrieval"),
        ("who approves AI tools?", "needs_retrieval"),
        ("My laptop got stolen", "needs_retrieval"),
        ("IL-6", "needs_retrieval"),
        ("Vitamin D lowers the risk of fractures in elderly women.", "needs_retrieval"),
    ],
)
async def test_routes(question: str, route: Route, embedder: OnnxEmbedder) -> None:
    routed = await LocalRouter(embedder).route(question, follow_up=False)
    found, reason = routed.route, routed.reason
    assert found == route
    assert reason.endswith(".")


async def test_a_follow_up_is_searched_sooner(embedder: OnnxEmbedder) -> None:
    for question in (
        "and in 2023?",
        "What about the other one?",
        "Why?",
        "Is it possible to change it?",
        "tell me more",
    ):
        assert (await LocalRouter(embedder).route(question, follow_up=True)).route == "needs_retrieval"


async def test_a_long_question_is_always_searched(embedder: OnnxEmbedder) -> None:
    question = "Hello, who are you, " + "and what do you think about the contract we signed " * 5
    assert (await LocalRouter(embedder).route(question, follow_up=False)).route == "needs_retrieval"


def test_courtesies_are_taken_off_the_front_only() -> None:
    assert strip_courtesies("Hi there, thanks! What is a greeting?") == "What is a greeting?"
    assert strip_courtesies("History of thanks") == "History of thanks"
    assert strip_courtesies("Notice period?") == "Notice period?"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Hello", "Hello!"),
        ("thank you", "You're welcome."),
        ("bye", "Goodbye"),
        ("how are you?", "I'm well"),
        ("who are you?", "I'm an assistant"),
        ("what can you do?", "I answer questions from your documents"),
        ("what can I ask you?", "I answer questions from your documents"),
        ("tell me a joke", "I am better with documents"),
        ("speak louder please, raise your volume", "I can't change how I work"),
    ],
)
async def test_replies_fit_what_was_said(question: str, expected: str) -> None:
    assert (await TALK.reply(question, ["Handbook"], "en")).startswith(expected)


async def test_replies_name_some_documents_and_never_a_search() -> None:
    titles = ["Handbook", "Manual", "Policy", "Contract"]
    told = await TALK.reply("What can you do?", titles, "en")
    assert told.endswith("You can ask me about “Handbook”, “Manual”, “Policy” and others.")
    assert (await TALK.reply("hi", titles[:2], "en")).endswith("about “Handbook” and “Manual”.")
    assert "no documents yet" in await TALK.reply("hi", [], "en")
    for text in (told, await TALK.reply("hm", titles, "en"), await TALK.decline("set an alarm", titles, "en")):
        assert "search" not in text.lower()


async def test_declining_says_what_can_be_asked() -> None:
    assert (await TALK.decline("Set an alarm for six", ["Handbook"], "en")).startswith("I can't do that")
    assert (await TALK.decline("What time is it?", ["Handbook"], "en")).startswith("I can't help with that")
    assert (await TALK.decline("What time is it?", ["Handbook"], "en")).endswith("You can ask me about “Handbook”.")


@pytest.mark.parametrize(
    ("question", "sure"),
    [
        ("How do I reset the device?", True),
        ("Hello!", True),
        ("Set an alarm for six", False),
        ("Wie lange gilt die Garantie?", True),
        ("Erzähl mir etwas", False),
        ("Warranty", False),
    ],
)
async def test_a_model_is_to_be_asked_what_is_neither_talk_nor_surely_for_the_documents(
    embedder: OnnxEmbedder, question: str, sure: bool
) -> None:
    assert (await LocalRouter(embedder).route(question, follow_up=False)).sure is sure
