"""What `cache explain` says of a question."""

from app.answering.cache_explanation import explain
from app.answering.requests import Ask
from app.wiring.services import Services
from domain.ports.answers import AnswerCounts
from domain.scope import Scope
from tests.asking import QUESTION, ask


async def test_says_which_component_differs_from_the_nearest(services: Services, library: dict[str, str]) -> None:
    nothing = await explain(services.make_run_parts(), Ask(QUESTION))
    assert (nothing["hit"], nothing["nearest"], nothing["differences"]) == (False, None, [])
    first = await ask(services)
    counted = await services.runs.answers.count("default")
    found = await explain(services.make_run_parts(), Ask(QUESTION))
    assert (found["hit"], found["differences"]) == (True, [])
    for asked, components in (
        (Ask(QUESTION, mode="fast"), {"mode", "profile"}),
        (Ask("Another?"), {"question"}),
        (Ask(QUESTION, scope=Scope("default", (library["Station handbook"],))), {"documents", "corpus"}),
        (Ask(QUESTION, thread_id=first["thread_id"]), {"conversation"}),
    ):
        missed = await explain(services.make_run_parts(), asked)
        assert not missed["hit"]
        assert {difference["component"] for difference in missed["differences"]} == components
    await services.library.ingestion.add("default", "news.md", b"# News\n\nNothing new.\n")
    [difference] = (await explain(services.make_run_parts(), Ask(QUESTION)))["differences"]
    assert difference["component"] == "corpus"
    assert difference["message"].startswith("documents changed since ")
    assert await services.runs.answers.count("default") == counted == AnswerCounts(hits=0, misses=1, shared=0)
