"""What nodes ask the library for, with a library of the test's own."""

from types import SimpleNamespace
from typing import Any, cast

from domain.documents import Candidate, Match, Passage
from domain.errors import EmbedderUnavailable
from domain.library.where import Where
from domain.profile import DocumentKnobs, Profile
from domain.scope import Scope
from nodes.context import profile_of, scope_of
from nodes.ranking.links import find_linked, place_linked
from nodes.sources.search import score_across_legs
from nodes.writing.missing import find_missing_names

SCOPE = Scope("w", ("d",))
EMBEDDING: Any = object()


def match(name: str, score: float = 0.5) -> Match:
    return Match(name, f"document {name}", score)


def passage(name: str, text: str, title: str) -> Passage:
    return Passage(name, 0, f"document {name}", title, text, 0, len(text))


class Library:
    """Answers with what it is given, and remembers what it was asked."""

    def __init__(self, **replies: Any) -> None:
        self.replies = replies
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        async def answer(*args: Any, **kwargs: Any) -> Any:
            self.asked.append((name, *args, kwargs) if kwargs else (name, *args))
            reply = self.replies[name]
            if isinstance(reply, Exception):
                raise reply
            return reply

        return answer


async def test_each_leg_scores_what_only_the_other_found() -> None:
    library = Library(score_dense=[match("c", 0.1)], score_lexical=[match("a", 0.2)])
    dense, lexical = [match("a"), match("b")], [match("b"), match("c")]
    scored = await score_across_legs(dense, lexical, SCOPE, EMBEDDING, "text", cast(Any, library))
    assert scored == ([*dense, match("c", 0.1)], [*lexical, match("a", 0.2)])
    assert library.asked == [("score_dense", SCOPE, EMBEDDING, ["c"]), ("score_lexical", SCOPE, "text", ["a"])]


def test_scope_and_profile_are_read_from_the_state() -> None:
    profile = Profile(name="own")
    state = {"scope": SCOPE.to_json(), "profile": profile.model_dump()}
    assert scope_of(state) == SCOPE
    narrow = DocumentKnobs(ids=["d", "e"], where="team=legal")
    state["profile"] = profile.model_copy(update={"documents": narrow}).model_dump()
    assert scope_of(state) == Scope("w", ("d",), Where.parse("team=legal"))
    state["profile"]["documents"]["ids"] = ["e"]
    assert scope_of(state).document_ids == ()
    assert profile_of({"profile": profile.model_dump()}) == profile


def test_names_and_numbers_that_no_source_mentions_are_found() -> None:
    question = "Which Falke of 2024 does Petra use, Petra or the Amsel?"
    assert find_missing_names(question, ["falke", "2024", "petra", "use"]) == ["Falke", "2024", "Petra"]
    assert find_missing_names("Falke or Amsel?", ["falk", "amsel"]) == ["Amsel"]
    assert find_missing_names("Falke", []) == []


class Embedder:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[tuple[Any, ...]] = []

    async def embed_query(self, *args: Any) -> Any:
        self.asked.append(args)
        if self.error:
            raise self.error
        return EMBEDDING


def make_context(library: Library, embedder: Embedder | None = None) -> Any:
    return SimpleNamespace(library=library, embedder=embedder or Embedder(), ledger="ledger")


def candidate(name: str, score: float) -> Candidate:
    return Candidate(
        chunk_id=name, document_id="d", score=score, dense=None, lexical=None, relevance=None
    )  # fmt: skip


MENTIONS = [
    passage("1", "met Lindqvist there", "Falke"),
    passage("2", "the Falke", "Handbook"),
    passage("3", "nobody", "Third"),
    passage("4", "knows Amsel", "Fourth"),
]


async def test_documents_that_the_best_passages_mention_are_found() -> None:
    linked = [passage("x", "born in Malmo", "Lindqvist"), passage("y", "own", "Handbook")]
    library = Library(search_titled=[match("x", 0.3), match("y", 0.2)], read_passages=linked)
    embedder = Embedder()
    candidates = {"1": candidate("1", 0.9), "2": candidate("2", 0.4)}
    found = await find_linked("Who?", SCOPE, MENTIONS, candidates, make_context(library, embedder))
    assert found == linked[:1]
    assert embedder.asked == [("Who?", "ledger")]
    assert library.asked == [
        ("search_titled", SCOPE, ["Lindqvist", "Lindqvist there"], EMBEDDING),
        ("read_passages", SCOPE, ["x", "y"]),
    ]
    assert list(candidates) == ["1", "2", "x"]
    assert candidates["x"] == {
        "chunk_id": "x", "document_id": "document x", "score": 0.4, "dense": 0.3, "lexical": None, "relevance": None,
    }  # fmt: skip


async def test_a_candidate_that_is_mentioned_too_stays_as_it_was() -> None:
    library = Library(search_titled=[match("2", 0.3)], read_passages=[passage("2", "", "Lindqvist")])
    candidates = {"2": candidate("2", 0.4)}
    assert await find_linked("Who?", SCOPE, MENTIONS, candidates, make_context(library))
    assert candidates == {"2": candidate("2", 0.4)}


async def test_nothing_is_linked_without_names_embedder_or_documents() -> None:
    candidates = {"1": candidate("1", 0.9)}
    nothing = make_context(Library())
    assert await find_linked("Who?", SCOPE, MENTIONS[2:3], candidates, nothing) == []
    broken = make_context(Library(), Embedder(EmbedderUnavailable()))
    assert await find_linked("Who?", SCOPE, MENTIONS, candidates, broken) == []
    empty = make_context(Library(search_titled=[]))
    assert await find_linked("Who?", SCOPE, MENTIONS, candidates, empty) == []
    assert list(candidates) == ["1"]


def test_where_all_are_linked_none_is_held_back() -> None:
    ranked = [(passage(name, "", ""), 0.0) for name in "abcdef"]
    assert [p.chunk_id for p, _ in place_linked(ranked, set("abcdef"), 5)] == list("abcdef")
    ranked = [(passage(name, "", ""), score) for name, score in zip("abcde", [0.9, 0.8, 0.7, 0.5, 0.5], strict=True)]
    # As relevant as the least relevant candidate is relevant enough.
    assert [p.chunk_id for p, _ in place_linked(ranked, {"e"}, 4)] == list("abced")
