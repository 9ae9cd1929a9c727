"""The log of a process: lines for people, or JSON for a log collector. Both name the run that a line is about."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

import orjson

from domain.text.controls import show_controls

LogFormat = Literal["text", "json"]

_about: ContextVar[Mapping[str, str] | None] = ContextVar("about", default=None)


@contextmanager
def log_about(**ids: str) -> Iterator[None]:
    """Add these ids, such as `run_id`, to every line that this task and the tasks that it starts log."""
    token = _about.set({**(_about.get() or {}), **ids})
    try:
        yield
    finally:
        _about.reset(token)


def configure_logs(log_format: LogFormat) -> None:
    """Have the handlers of the process write this format."""
    formatter = JsonFormatter() if log_format == "json" else TextFormatter()
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)


class TextFormatter(logging.Formatter):
    """Writes `TIME LEVEL LOGGER: MESSAGE`, and the run where the message does not name it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return show_controls(super().format(record), lines=True)  # also of exceptions

    def formatMessage(self, record: logging.LogRecord) -> str:
        run_id = (_about.get() or {}).get("run_id")
        line = show_controls(super().formatMessage(record))
        return line if run_id is None or run_id in line else f"{line} (run {run_id})"


class JsonFormatter(logging.Formatter):
    """Writes one JSON object a line. A call may add fields: `logger.info(..., extra={"fields": {...}})`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **(_about.get() or {}),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return show_controls(orjson.dumps(line, default=str).decode())
