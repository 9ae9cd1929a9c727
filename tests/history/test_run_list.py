"""Lists of runs, and the filter that chooses them."""

from typing import Any

import pytest

from app.history.run_list import list_runs, read_filter, sum_up_runs
from app.wiring.services import Services
from app.workbench.explain.failures import group_failures
from domain.errors import FilterError, InputError
from domain.history.run_lists import parse_run_filter
from domain.library.where import Where
from domain.people.access import Caller
from domain.scope import DEFAULT_SCOPE, Scope
from tests.asking import ask
from tests.conftest import HANDBOOK

UNANSWERED = "What does the zoo in Lisbon charge for parrots?"


@pytest.mark.usefixtures("library")
async def test_runs_are_listed_filtered_and_paged(services: Services) -> None:
    answered = await ask(services)
    abstained = await ask(services, UNANSWERED)
    narrow = await ask(services, mode="fast", scope=Scope.within("default", groups=["staff"]))

    async def list_ids(asker: Scope = DEFAULT_SCOPE, **options: Any) -> list[str]:
        found = await list_runs(services.runs.log, asker, read_filter(**options))
        return [run["run_id"] for run in found["runs"]]

    newest_first = [narrow["run_id"], abstained["run_id"], answered["run_id"]]
    assert await list_ids() == newest_first
    assert await list_ids(where="outcome == abstained") == newest_first[1:2]
    assert await list_ids(where='outcome == abstained or mode = fast and question ^= "How"') == newest_first[:2]
    either = "outcome == abstained or mode = fast"
    assert await list_ids(where=[either, 'question ^= "How"']) == newest_first[:1]
    assert await list_ids(where=["mode = fast", "outcome == abstained"]) == []
    with pytest.raises(FilterError, match="more than 20 alternatives"):
        await list_ids(where=[" or ".join(f"ms > {number}" for number in range(7)), "a = 1 or b = 1 or c = 1"])
    assert await list_ids(where="ms >= 0 and cached = false and error = none") == []
    assert await list_ids(since="2999-01-01") == []
    assert await list_ids(Scope("other")) == []
    assert await list_ids(Scope.within("default", groups=["staff", "board"])) == newest_first
    # What a run was shown decides, not who asked.
    assert await list_ids(Scope.within("default", groups=["board"])) == newest_first

    # By words of question and answer, by day, and by what was cited.
    assert await list_ids(text="MONTHS warrant") == [narrow["run_id"], answered["run_id"]]
    assert await list_ids(text="months parrots") == []
    assert await list_ids(text="%") == []
    assert await list_ids(since="today", until="1m") == [] == await list_ids(since="yesterday", until="today")
    title = answered["citations"][0]["title"]
    assert await list_ids(where=f'documents == "{title}" and mode = standard') == newest_first[2:]
    figures = await sum_up_runs(
        services.runs.log, DEFAULT_SCOPE, read_filter(where="outcome == abstained or mode = fast")
    )
    assert figures["total"]["outcomes"] == {"answered": 1, "abstained": 1}
    assert sum(period["runs"] for period in figures["periods"]) == figures["total"]["runs"] == 2
    assert figures["documents"] == {title: 1}
    page = await list_runs(services.runs.log, DEFAULT_SCOPE, read_filter(where="outcome == abstained or mode = fast"))
    assert [figures["total"]["p50_ms"], figures["total"]["p95_ms"]] == sorted(run["ms"] for run in page["runs"])

    await services.runs.feedback.put("default", answered["run_id"], "down", "wrong", "It is 24 months.", Caller("anna"))
    assert await list_ids(where="rating == 'down'") == newest_first[2:]
    assert await list_ids(where='rating = up or complaint = incomplete and comment ^= "It"') == []
    failures = await group_failures(services.runs.log, DEFAULT_SCOPE, read_filter())
    assert (failures["runs"], failures["failures"]) == (3, 2)
    examples = {group["cause"]: group["examples"][0] for group in failures["groups"]}
    assert examples["kept, and judged not to answer"]["run_id"] == abstained["run_id"]
    assert examples["a reader complained of the answer"]["detail"] == "wrong: It is 24 months."

    # What the answers cite is replaced: a complaint of one has a cause, and the other is no longer true.
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK.replace(b"36 months", b"48 months"))
    assert await list_ids(where="outdated > 0") == [narrow["run_id"], answered["run_id"]]
    groups = {
        group["cause"]: group
        for group in (await group_failures(services.runs.log, DEFAULT_SCOPE, read_filter()))["groups"]
    }
    outdated = "what the answer cites was replaced or deleted since"
    assert (
        groups[f"outdated document: a reader complained, and {outdated}"]["examples"][0]["run_id"]
        == (answered["run_id"])
    )
    assert groups[f"outdated document: {outdated}"]["examples"][0]["run_id"] == narrow["run_id"]

    seen, after = [], None
    for _ in range(3):
        page = await list_runs(services.runs.log, Scope("default"), read_filter(limit=1, after=after))
        seen += [run["run_id"] for run in page["runs"]]
        after = page["next"]
    assert (seen, after) == (newest_first, None)
    with pytest.raises(InputError):
        read_filter(after="yesterday")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = red", "It has: answered_by"),
        ("retries > many", "compared with a number"),
        ("retries = true", "compared with a number"),
        ("cached = 1", "true or false"),
        ("mode = 7", "compared with text"),
        ("outcome = abstained or", "a condition such as"),
        ("outcome = abstained, retries > 0", "`and` is expected"),
        ("__import__('os').system('true')", "an operator is expected"),
    ],
)
def test_a_filter_that_no_run_can_fit_is_refused(text: str, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        parse_run_filter(text)


def test_and_binds_more_tightly_than_or() -> None:
    written = [str(where) for where in Where.parse_alternatives("a == 1 or b = 2 and c = 3 OR d in (4, 5)")]
    assert written == ["a=1", "b=2 and c=3", "d in (4, 5)"]
    with pytest.raises(FilterError, match="other alternatives are not supported"):
        Where.parse("a = 1 or b = 2")
