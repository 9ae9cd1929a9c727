"""`ChatOpenAI` accepts chunks as dicts, and still serves callbacks and traces from them."""

from typing import Any

import openai
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.outputs import LLMResult

from app.adapters.chat.openai import OpenAIChat
from domain.ports.models import Message
from tests.contracts.chat_model import SOURCE, Judgement, Sink
from tests.wire.openai import serve_openai


class Watching(AsyncCallbackHandler):
    """Records what a tracer sees of a call."""

    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.ended: list[LLMResult] = []

    async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.tokens.append(token)

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.ended.append(response)


async def test_callbacks_see_every_token_the_usage_and_structured_judgements() -> None:
    async with serve_openai() as server, openai.DefaultAsyncHttpxClient() as http:
        model = OpenAIChat("gpt-4.1-mini", api_key="key", base_url=server.base_url, timeout=10, http=http)
        watching = Watching()
        model.client.callbacks = [watching]
        messages = [Message("user", f"{SOURCE}\n\nQuestion: How long is the notice period?")]
        sink = Sink()
        pieces = [piece async for piece in model.stream(messages, sink, temperature=0.2, max_tokens=100)]
        await model.judge([Message("user", "Judge.")], Judgement, sink)
    assert len(pieces) > 3
    assert [token for token in watching.tokens if token] == pieces
    streamed, judged = (result.generations[0][0] for result in watching.ended)
    assert streamed.text == "".join(pieces)
    assert streamed.message.usage_metadata["output_tokens"] == sink.usage[0].output_tokens > 0  # type: ignore[attr-defined]
    assert Judgement.model_validate_json(judged.text)
    assert server.requests[1]["response_format"]["type"] == "json_schema"
