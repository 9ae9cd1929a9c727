"""The tools of the research agent, on the real library."""

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from app.wiring.services import Services
from domain.scope import DEFAULT_SCOPE, Scope
from domain.state import WorkCall, WorkRound
from nodes.use_tool.step import UseToolUpdate, use_tool
from tests.nodes.nodes_alone import make_state

LONG = "# Guide\n\n" + "\n\n".join(
    f"## Chapter {number}\n\n{' '.join(f'Sentence {number}.{each} of the guide says little.' for each in range(40))}"
    for number in range(1, 13)
)


async def use(
    services: Services, *calls: dict[str, Any], scope: Scope = DEFAULT_SCOPE, **state: Any
) -> tuple[UseToolUpdate, list[Any]]:
    events: list[Any] = []
    asked = [
        WorkCall(id=str(number), problem="", result="", sources=[], **call)  # type: ignore[typeddict-item]
        for number, call in enumerate(calls)
    ]
    given = make_state(
        profile=services.modes["research"], work=[WorkRound(text="", calls=asked)], scope=scope.to_json()
    )
    runtime = Runtime(context=services.make_context(), stream_writer=events.append)
    return await use_tool(given | state, runtime), events


def search(*queries: str, **arguments: Any) -> dict[str, Any]:
    return {"name": "search", "arguments": {"queries": list(queries), **arguments}}


def read_result(update: UseToolUpdate, place: int = 0) -> WorkCall:
    return update["work"][-1]["calls"][place]


async def test_searches_side_by_side_bring_numbered_sources_each_once(
    services: Services, library: dict[str, str]
) -> None:
    update, events = await use(services, search("warranty of the Falke", "battery of the Amsel"), search("warranty"))
    assert [source["number"] for source in update["sources"]] == list(range(1, len(update["sources"]) + 1))
    first, second = update["work"][-1]["calls"]
    text = " ".join(source["text"] for source in update["sources"])
    assert "36 months" in text
    assert "9 months" in text
    assert set(second["sources"]) <= set(first["sources"])
    kinds = [(event["type"], event["call_id"]) for event in events]
    assert kinds == [("tool_call", "0"), ("tool_call", "1"), ("tool_result", "0"), ("tool_result", "1")]


async def test_a_search_keeps_to_the_documents_that_it_names(services: Services, library: dict[str, str]) -> None:
    for name in ("Amsel manual", "manual.md", "amsel MANUAL"):
        update, _ = await use(services, search("warranty of the Falke", documents=[name]))
        assert {source["document_id"] for source in update["sources"]} == {library["Amsel manual"]}


async def test_a_search_keeps_to_its_filter_and_to_the_scope(services: Services, library: dict[str, str]) -> None:
    filtered, _ = await use(services, search("warranty", filter="path ^= 'hand'"))
    assert {source["document_id"] for source in filtered["sources"]} == {library["Station handbook"]}
    scope = replace(DEFAULT_SCOPE, document_ids=(library["Amsel manual"],))
    scoped, _ = await use(
        services, search("warranty"), {"name": "list_documents", "arguments": {}},
        {"name": "read", "arguments": {"document": "Station handbook"}}, scope=scope,
    )  # fmt: skip
    assert {source["document_id"] for source in scoped["sources"]} == {library["Amsel manual"]}
    assert read_result(scoped, 1)["result"] == "Amsel manual (manual.md)"
    assert read_result(scoped, 2)["sources"] == []


async def test_a_long_document_is_read_in_pieces_without_a_gap(services: Services) -> None:
    await services.library.ingestion.add("default", "guide.md", LONG.encode())
    skip, read, pieces = 0, "", 0
    while True:
        update, _ = await use(services, {"name": "read", "arguments": {"document": "guide.md", "skip": skip}})
        result = read_result(update)["result"]
        read += "\n".join(source["text"] for source in update["sources"]) + "\n"
        pieces += 1
        if "skip=" not in result:
            break
        skip = int(result.partition("skip=")[2].split()[0])
    assert pieces > 1
    for number in range(1, 13):
        for each in range(40):
            assert f"Sentence {number}.{each} of the guide says little." in read


async def test_reading_begins_at_a_section_and_outlines_name_them(services: Services) -> None:
    await services.library.ingestion.add("default", "guide.md", LONG.encode())
    update, _ = await use(
        services,
        {"name": "outline", "arguments": {"document": "Guide"}},
        {"name": "read", "arguments": {"document": "Guide", "section": "Chapter 7"}},
        {"name": "read", "arguments": {"document": "Guide", "section": "Chapter 99"}},
    )
    outline, read, lost = update["work"][-1]["calls"]
    assert [f"Chapter {number}" in outline["result"] for number in range(1, 13)] == [True] * 12
    assert update["sources"][read["sources"][0] - 1]["text"].startswith("## Chapter 7")
    assert lost["sources"] == []
    assert "outline" in lost["result"]


async def test_a_call_that_cannot_be_done_tells_the_model_why(services: Services, library: dict[str, str]) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": "burn", "arguments": {}}, "no tool 'burn'"),
        (search(), "queries"),
        (search("x", documents=["Falke handbok"]), "list_documents"),
        (search("x", filter="path ^^ 3"), "operator is expected"),
        ({"name": "read", "arguments": {"document": "Station handbook", "page": 0}}, "page"),
    ]
    for call, told in cases:
        update, _ = await use(services, call)
        assert told in read_result(update)["result"]
        assert update["sources"] == []


async def test_a_document_that_an_answer_may_repeat_is_in_the_lineage(
    services: Services, library: dict[str, str]
) -> None:
    update, _ = await use(
        services, {"name": "list_documents", "arguments": {}}, search("x", documents=["Station handbok"])
    )
    assert set(update["listed"]) == set(library.values())
    assert read_result(update, 1)["sources"] == []


async def test_a_folder_names_its_documents_and_the_server_s_own_folders_stay_out(services: Services) -> None:
    for path in ("/srv/data/team/rules/leave/notice.md", "/srv/data/team/rules/pay.md"):
        await services.library.ingestion.add("default", path, f"# {path[-9:]}\n\nThe notice is a month.".encode())
    update, _ = await use(services, search("notice", documents=["leave/"]), {"name": "list_documents", "arguments": {}})
    assert {source["source"] for source in update["sources"]} == {"/srv/data/team/rules/leave/notice.md"}
    assert "rules/leave/notice.md" in read_result(update, 1)["result"]
    assert "/srv" not in read_result(update, 1)["result"]


async def test_an_outline_names_headings_without_text_of_their_own(services: Services) -> None:
    gone = "The option is gone since the third version, and nothing has taken its place. " * 12
    text = f"# Guide\n\n## Docker\n\n### Option\n\n{gone}\n\n## Consul\n\n### Option\n\n{gone}\n"
    await services.library.ingestion.add("default", "guide.md", text.encode())
    update, _ = await use(services, {"name": "outline", "arguments": {"document": "Guide"}})
    lines = [line.partition(" (")[0].strip() for line in read_result(update)["result"].splitlines()]
    assert lines == ["Guide", "Docker", "Option", "Consul", "Option"]


async def test_a_text_is_found_letter_by_letter(services: Services) -> None:
    text = "# Codes\n\n" + "\n\n".join(
        f"## Case {each}\n\nError 0.13{each} is told by the lamp. {'It blinks. ' * 40}" for each in range(10)
    )
    await services.library.ingestion.add("default", "codes.md", text.encode())
    update, _ = await use(
        services,
        {"name": "find", "arguments": {"text": "error 0.135"}},
        {"name": "find", "arguments": {"text": "0.13"}},
        {"name": "find", "arguments": {"text": "0,13"}},
    )
    one, many, none = update["work"][-1]["calls"]
    assert one["result"] == "'error 0.135' stands in 1 passages."
    assert ["0.135" in update["sources"][number - 1]["text"] for number in one["sources"]] == [True]
    assert many["result"] == "'0.13' stands in 10 passages; the first 8 follow."
    assert len(many["sources"]) == 8
    assert (none["result"], none["sources"]) == ("It stands nowhere.", [])
