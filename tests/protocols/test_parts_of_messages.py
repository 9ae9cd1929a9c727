"""Parts of messages that are no text: refused in the question, and passed over in the conversation before it."""

from typing import Any

import httpx
import pytest

from app.wiring.services import Services
from tests.asking import QUESTION
from tests.http_client import serve_services

PICTURE = "data:image/png;base64,iVBORw0KGgo="
PICTURE_FIRST: dict[str, Any] = {"type": "image_url", "image_url": {"url": PICTURE}}
OTHER = [("user", "What is this?"), ("assistant", "A boat.")]


def _message(role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": role, "role": role, "content": [*parts], **more}


def make_body(protocol: str, shown: dict[str, Any] | None, asked: dict[str, Any] | None) -> dict[str, Any]:
    """A conversation in which the first question, or the last, has such a part."""
    said = [(role, text, shown if role == "user" else None) for role, text in OTHER] + [("user", QUESTION, asked)]
    kinds = {"user": "input_text", "assistant": "output_text"} if protocol == "responses" else {}
    messages = [
        _message(role, *([part] if part else []), {"type": kinds.get(role, "text"), "text": text})
        for role, text, part in said
    ]
    match protocol:
        case "responses":
            return {"model": "fast", "input": messages}
        case "ui":
            return {"id": "c", "mode": "fast", "messages": [{**each, "parts": each["content"]} for each in messages]}
        case "ag-ui":
            for each in messages:
                if each["role"] == "assistant":
                    each["content"] = "A boat."
            return {"threadId": "t", "runId": "r", "messages": messages}
        case "langgraph":
            return {"assistant_id": "fast", "input": {"messages": messages}}
    return {"model": "fast", "messages": messages}


@pytest.mark.parametrize(
    ("protocol", "path", "part"),
    [
        ("chat", "/v1/chat/completions", PICTURE_FIRST),
        ("responses", "/v1/responses", {"type": "input_image", "image_url": PICTURE}),
        ("ui", "/api/ui/chat", {"type": "file", "mediaType": "image/png", "url": PICTURE}),
        ("ag-ui", "/ag-ui?mode=fast", {"type": "binary", "mimeType": "image/png", "url": PICTURE}),
        ("langgraph", "/langgraph/runs/wait", PICTURE_FIRST),
    ],
)
async def test_only_the_question_has_to_be_text(
    services: Services, library: dict[str, str], protocol: str, path: str, part: dict[str, Any]
) -> None:
    async with serve_services(services) as address, httpx.AsyncClient(base_url=address, timeout=60) as client:
        said = await client.post(path, json=make_body(protocol, part, None))
        assert said.status_code == 200
        assert "36" in said.text
        assert "months" in said.text
        refused = await client.post(path, json=make_body(protocol, None, part))
        assert refused.status_code in (400, 422)
        assert "Only text can be asked about" in refused.text
