"""What the service sends is described twice: in its own types, by which it is checked, and in the client's. The page names what it reads. None has a field that the service does not send."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from app.api.schema.responses import LibraryBody, ModeBody
from askgraph import events, models
from domain import documents, runs
from domain import events as told
from domain.history.feedback import Feedback
from domain.history.run_lists import RunSummary
from domain.library.ingestions import IngestionProgress
from domain.people.access import ApiKey
from domain.state import Usage


def list_fields(kind: Any) -> set[str]:
    return set(
        getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", None) or kind.__annotations__
    )


def name_event(kind: Any) -> str:
    field = kind.model_fields["type"].annotation if hasattr(kind, "model_fields") else kind.__annotations__["type"]
    return str(get_args(field)[0])


SENT = {name_event(kind): kind for kind in get_args(told.Event)}
HEARD = {name_event(kind): kind for kind in get_args(events.Event)}


def test_the_client_knows_every_event_with_its_fields() -> None:
    assert HEARD.keys() - {"accepted"} == SENT.keys() - {"error"}
    for name in HEARD.keys() & SENT.keys() - {"done"}:
        assert list_fields(HEARD[name]) == list_fields(SENT[name]), name
    # Both come from other events of the run.
    assert list_fields(events.Done) - {"sources", "comparison"} == list_fields(told.Done)


@pytest.mark.parametrize(
    ("model", "own", "unsent"),
    [
        (models.CitedPassage, documents.CitedPassage, set()),
        (models.Citation, documents.Citation, set()),
        (models.OutsideCall, documents.OutsideCall, set()),
        (models.Claim, documents.Claim, set()),
        (models.Verification, documents.Verification, set()),
        (models.Usage, Usage, set()),
        (models.DocumentReport, documents.DocumentReport, set()),
        (models.Progress, IngestionProgress, set()),
        (models.Feedback, Feedback, {"given_by"}),
        (models.RunSummary, RunSummary, set()),
        (models.ThreadSummary, runs.Conversation, set()),
        (models.StepTime, runs.StepTime, set()),
        (models.Withdrawal, runs.Withdrawal, set()),
        (models.ToolUse, runs.ToolUse, set()),
    ],
    ids=lambda kind: getattr(kind, "__name__", None),
)
def test_a_model_of_the_client_has_the_fields_of_the_service(model: Any, own: Any, unsent: set[str]) -> None:
    assert list_fields(model) == list_fields(own) - unsent


PAGE = (Path(__file__).parents[2] / "app" / "web" / "types.d.ts").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Box", documents.PageBox),
        ("Passage", documents.CitedPassage),
        ("Citation", documents.Citation),
        ("ThreadEntry", models.ThreadSummary),
        ("SavedTurn", models.Turn),
        ("LibraryDocument", models.Document),
        ("Library", LibraryBody),
        ("Key", ApiKey),
        ("Assistant", models.Assistant),
        ("ModeFacts", ModeBody),
        ("Ingestion", models.Ingestion),
        ("Rating", models.Feedback),
    ],
)
def test_the_page_reads_only_what_the_service_sends(name: str, kind: Any) -> None:
    declared = PAGE.split(f"\ntype {name} = {{")[1].split("\ntype ")[0].rpartition("};")[0]
    # Fields of fields are left out, the innermost first.
    while declared != (declared := re.sub(r"\{[^{}]*\}", "", declared)):
        pass
    assert set(re.findall(r"(\w+)\??:", declared)) <= list_fields(kind)
