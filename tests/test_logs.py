"""The log says which run a line is about, for people and for collectors."""

import asyncio
import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest

from app.support.logs import JsonFormatter, TextFormatter, log_about


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, logging.StreamHandler[StringIO]]]:
    logger, handler = logging.getLogger("askgraph.tests"), logging.StreamHandler(StringIO())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield logger, handler
    logger.removeHandler(handler)


def test_what_was_logged_controls_no_terminal(log: tuple[logging.Logger, logging.StreamHandler[StringIO]]) -> None:
    logger, handler = log
    for formatter in (TextFormatter(), JsonFormatter()):
        handler.setFormatter(formatter)
        try:
            raise ValueError("\x1b[2J")
        except ValueError:
            logger.exception("%s is broken.", "a\x1b[1A\u202e\n2026-01-01 INFO: fine")
    said = handler.stream.getvalue()
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\n2026-01-01 INFO: fine" not in said


async def test_a_line_names_its_run_in_tasks_of_the_run_too(
    log: tuple[logging.Logger, logging.StreamHandler[StringIO]],
) -> None:
    logger, handler = log
    handler.setFormatter(JsonFormatter())

    async def work() -> None:
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("It %s.", "failed", extra={"fields": {"step": "grade"}})

    with log_about(run_id="r1", workspace_id="acme"):
        await asyncio.create_task(work())
    logger.info("Nobody's.")
    first, second = map(json.loads, handler.stream.getvalue().splitlines())
    assert first.items() >= {"message": "It failed.", "run_id": "r1", "workspace_id": "acme", "step": "grade"}.items()
    assert first["level"] == "error"
    assert "ValueError: broken" in first["exception"]
    assert "run_id" not in second


def test_text_names_the_run_once(log: tuple[logging.Logger, logging.StreamHandler[StringIO]]) -> None:
    logger, handler = log
    handler.setFormatter(TextFormatter())
    with log_about(run_id="r1"):
        logger.info("A search failed.")
        logger.info("run r1 failed")
    first, second = handler.stream.getvalue().splitlines()
    assert first.endswith("INFO askgraph.tests: A search failed. (run r1)")
    assert second.endswith("INFO askgraph.tests: run r1 failed")
