"""Records what LangGraph's own server answers. Run it beside `langgraph dev` of this folder:

cd tests/protocols/agent_server_recording && langgraph dev --no-browser --no-reload --port 2024
python -m tests.protocols.agent_server_recording.record http://127.0.0.1:2024
"""

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client

from tests.protocols.agent_server_recording.calls import call, shape

RECORDED = Path(__file__).with_name("recorded.json")
GIVEN = {
    "messages": [{"type": "human", "content": "How long?", "id": "q1"}],
    "question": "How long?",
    "mode": "standard",
}


async def record(address: str) -> None:
    """Write the recording."""
    async with get_client(url=address, api_key=None) as client:
        told = await call(client, "standard", GIVEN)
    packages = ("langgraph-api", "langgraph-runtime-inmem", "langgraph", "langgraph-sdk")
    source = {name: version(name) for name in packages}
    write(source, {name: shape(each, name) for name, each in told.items()})


def write(source: dict[str, str], told: dict[str, Any]) -> None:
    """Write the recording, a line for each call."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in told.items())
    RECORDED.write_text(f'{{"source": {json.dumps(source)},\n"told": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
