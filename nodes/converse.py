"""converse: small talk, answered without a search."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.errors import ModelError, ModelUnavailable
from domain.ports import Message
from domain.state import Turn
from nodes.context import Context
from nodes.local.smalltalk import reply
from nodes.scope import profile_of, scope_of
from nodes.writing import Answered, AnswerWriter, finish_turn

PROMPT = """You are askgraph, which answers questions from a team's documents and cites them. The user makes small
talk or asks about you. Reply in one or two friendly sentences, in their language. State no facts about the world or
about the documents; offer to look something up. Titles of some documents: {titles}"""

_TITLES_SHOWN = 5
_TURNS_SHOWN = 4
_REPLY_TOKENS = 150


class ConverseUpdate(TypedDict):
    """What converse writes."""

    answer: str
    turns: list[Turn]


async def converse(state: Answered, runtime: Runtime[Context]) -> ConverseUpdate:
    """Reply in kind, and say what can be asked."""
    context = runtime.context
    titles = await context.library.read_titles(scope_of(state), _TITLES_SHOWN)
    writer = AnswerWriter(runtime.stream_writer)
    if context.models.small is not None:
        messages = [Message("system", PROMPT.format(titles=", ".join(titles) or "none yet"))]
        for turn in state["turns"][-_TURNS_SHOWN:]:
            messages += [Message("user", turn["question"]), Message("assistant", turn["answer"])]
        messages.append(Message("user", state["question"]))
        try:
            temperature = profile_of(state).generate.temperature
            async for token in context.models.small.stream(
                messages, context.ledger, temperature=temperature, max_tokens=_REPLY_TOKENS
            ):
                writer.write(token)
        except (ModelError, ModelUnavailable) as error:
            context.ledger.warn(f"Replied without the language model: {error.message}")
            if writer.text:
                writer.correct("The language model stopped.", reply(state["question"], titles), [])
    if not writer.text:
        writer.write(reply(state["question"], titles))
    return ConverseUpdate(answer=writer.text, turns=finish_turn(state, writer.text, []))
