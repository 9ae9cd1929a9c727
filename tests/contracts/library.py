"""The contract of `Library`. An adapter's tests inherit from the class and provide the fixtures `library` and
`documents`, both over the same empty store."""

from uuid import uuid4

import numpy as np
import pytest

from domain.library.metadata import Metadata
from domain.library.where import Where
from domain.ports.documents import DocumentStore
from domain.ports.library import Library
from domain.scope import Scope
from tests.contracts.corpus import store, vector_of

WARRANTY = "The Falke weather station has a warranty of 36 months."
BATTERY = "Its battery lasts 14 months and is replaced with two lithium cells."
INTERLEUKIN = "Serum levels of IL-6 rose in patients with covid-19."
VERSION = "Version 2.1 of the firmware introduces naïve mode."


LEGAL, PEOPLE, OLD = "Claims go to court within 30 days.", "Claims for leave go to Ms. Keller.", "Claims were paper."
FILED: dict[str, tuple[str, Metadata]] = {
    "legal.md": (LEGAL, {"unit": "legal", "year": 2024, "tags": ["law", "eu"], "draft": False, "code": "L-1"}),
    "people.md": (PEOPLE, {"unit": "hr", "year": 2025, "tags": ["eu"], "draft": True, "code": "L-2"}),
    "old.md": (OLD, {"unit": "legal", "year": "2019", "code": "X", "date": "2019-12-31"}),
}
FILTERS = [
    ("unit=legal", {LEGAL, OLD}),
    ("unit=legal and year>=2024", {LEGAL}),
    ("year>2024 and year<=2025", {PEOPLE}),
    ("year>=2000", {LEGAL, PEOPLE}),  # numbers are not compared with text
    ('year>="2000"', {OLD}),
    ("unit in (hr, sales)", {PEOPLE}),
    ('year in (2024, "2019")', {LEGAL, OLD}),
    ("tags=eu", {LEGAL, PEOPLE}),
    ("tags=law", {LEGAL}),
    ("tags^=l", {LEGAL}),
    ("code^=L-", {LEGAL, PEOPLE}),
    ("draft=true", {PEOPLE}),
    ('draft="true"', set()),
    ("date<2020-01-01", {OLD}),
    ("unit=sales", set()),
    ('"no such key"=1', set()),
    ("unit='l\"egal'", set()),
]


async def file(documents: DocumentStore) -> None:
    for source, (text, metadata) in FILED.items():
        await store(documents, "a", source, [text], title=f"Title of {source}", metadata=metadata)


class LibraryContract:
    async def test_no_method_sees_what_the_filter_excludes(self, library: Library, documents: DocumentStore) -> None:
        await file(documents)
        for written, texts in FILTERS:
            await self.check_filter(library, written, texts)

    async def check_filter(self, library: Library, written: str, texts: set[str]) -> None:
        everything, scope = Scope("a"), Scope("a", where=Where.parse(written))
        every_id = [match.chunk_id for match in await library.search_dense(everything, vector_of(LEGAL), 10)]
        assert len(every_id) == 3
        words = "Claims go to court, leave, paper"
        read = {passage.chunk_id: passage.text for passage in await library.read_passages(scope, every_id)}
        assert set(read.values()) == texts, written
        # With a limit of one, what is excluded would take the place of what is not.
        for text in texts:
            [nearest] = await library.search_dense(scope, vector_of(text), 1)
            assert read[nearest.chunk_id] == text
        found = {
            "search_dense": await library.search_dense(scope, vector_of(LEGAL), 10),
            "search_lexical": await library.search_lexical(scope, words, 10),
            "score_dense": await library.score_dense(scope, vector_of(LEGAL), every_id),
            "score_lexical": await library.score_lexical(scope, words, every_id),
        }
        for name, matches in found.items():
            assert {match.chunk_id for match in matches} == set(read), (written, name)
        related = await library.score_related(scope, words, {every_id[0]: 1.0}, every_id)
        titled = await library.search_titled(scope, [f"title of {source}" for source in FILED], vector_of(LEGAL))
        assert {match.chunk_id for match in [*related, *titled]} <= set(read)
        assert {passage.chunk_id for passage in await library.read_around(scope, every_id, 1, 1)} == set(read)
        assert len(await library.list_recent(scope, 10)) == len(texts)

    async def test_a_filter_and_chosen_documents_hold_together(
        self, library: Library, documents: DocumentStore
    ) -> None:
        await file(documents)
        matches = await library.search_dense(Scope("a"), vector_of(LEGAL), 10)
        passages = await library.read_passages(Scope("a"), [match.chunk_id for match in matches])
        ids = {passage.text: passage.document_id for passage in passages}
        scope = Scope("a", (ids[LEGAL], ids[PEOPLE]), Where.parse("unit=legal"))
        assert {match.document_id for match in await library.search_dense(scope, vector_of(LEGAL), 10)} == {ids[LEGAL]}
        assert {match.document_id for match in await library.search_lexical(scope, "claims", 10)} == {ids[LEGAL]}

    async def test_dense_search_finds_the_nearest_first(self, library: Library, documents: DocumentStore) -> None:
        document = await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN])
        wanted = 0.9 * vector_of(BATTERY) + 0.3 * vector_of(WARRANTY)
        matches = await library.search_dense(Scope("a"), wanted.astype(np.float32) / np.linalg.norm(wanted), 2)
        passages = await library.read_passages(Scope("a"), [m.chunk_id for m in matches])
        assert [p.text for p in passages] == [BATTERY, WARRANTY]
        assert {m.document_id for m in matches} == {document.id}
        assert matches[0].score == pytest.approx(0.9 / np.hypot(0.9, 0.3), abs=0.1)
        assert matches[0].score > matches[1].score

    async def test_lexical_search_ranks_by_shared_rare_terms(self, library: Library, documents: DocumentStore) -> None:
        await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN])
        matches = await library.search_lexical(Scope("a"), "How long does the battery of the station last?", 5)
        passages = await library.read_passages(Scope("a"), [m.chunk_id for m in matches])
        assert [p.text for p in passages] == [BATTERY, WARRANTY]
        assert matches[0].score > matches[1].score > 0

    async def test_of_two_passages_with_a_word_the_shorter_is_the_better(
        self, library: Library, documents: DocumentStore
    ) -> None:
        long = f"{BATTERY} {INTERLEUKIN} {VERSION}"
        await store(documents, "a", "falke.md", [long, BATTERY])
        matches = await library.search_lexical(Scope("a"), "battery", 5)
        passages = await library.read_passages(Scope("a"), [m.chunk_id for m in matches])
        assert [p.text for p in passages] == [BATTERY, long]
        assert matches[0].score > matches[1].score

    SPELLINGS: tuple[tuple[str, str], ...] = (
        ("IL-6", INTERLEUKIN),
        ("il6", INTERLEUKIN),
        ("COVID‑19 patient", INTERLEUKIN),
        ("v naive", VERSION),
        ("2.1", VERSION),
        ("v2.1", VERSION),
        ("batteries", BATTERY),
    )

    async def test_lexical_search_levels_spelling(self, library: Library, documents: DocumentStore) -> None:
        await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN, VERSION])
        for query, text in self.SPELLINGS:
            matches = await library.search_lexical(Scope("a"), query, 1)
            found = await library.read_passages(Scope("a"), [m.chunk_id for m in matches])
            assert [p.text for p in found] == [text], query

    async def test_lexical_search_finds_words_of_title_and_heading(
        self, library: Library, documents: DocumentStore
    ) -> None:
        document = await store(documents, "a", "falke.md", [WARRANTY], title="Meteorology")
        await store(documents, "a", "amsel.md", [BATTERY], title="Gardening")
        assert [m.document_id for m in await library.search_lexical(Scope("a"), "meteorology", 5)] == [document.id]

    async def test_lexical_search_returns_only_what_shares_a_term(
        self, library: Library, documents: DocumentStore
    ) -> None:
        await store(documents, "a", "falke.md", [WARRANTY, BATTERY])
        for query in ("", "  ", "what is the", "zebra", "?!", "' or 1=1 --"):
            assert await library.search_lexical(Scope("a"), query, 5) == [], query

    async def test_scores_of_given_chunks_equal_those_of_a_search(
        self, library: Library, documents: DocumentStore
    ) -> None:
        scope = Scope("a")
        document = await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN])
        dense = await library.search_dense(scope, vector_of(BATTERY), 3)
        ids = [match.chunk_id for match in dense]
        query = "How long does the battery of the station last?"
        found = {match.chunk_id: match.score for match in await library.search_lexical(scope, query, 3)}
        lexical = {match.chunk_id: match.score for match in await library.score_lexical(scope, query, ids)}
        assert lexical == {chunk_id: pytest.approx(found.get(chunk_id, 0)) for chunk_id in ids}
        assert len(found) == 2
        again = await library.score_dense(scope, vector_of(BATTERY), [*ids[1:], str(uuid4()), "no id"])
        assert {m.chunk_id: m.score for m in again} == {m.chunk_id: pytest.approx(m.score, abs=1e-6) for m in dense[1:]}
        assert {m.document_id for m in again} == {document.id}

    async def test_related_chunks_share_what_the_examples_add_to_the_query(
        self, library: Library, documents: DocumentStore
    ) -> None:
        scope = Scope("a")
        texts = ["Falke sensors rust.", "Rust spreads in brine.", "Brine dries.", "Falke sensors hum."]
        await store(documents, "a", "falke.md", texts, title="Notes")
        matches = await library.search_lexical(scope, "notes", 4)
        texts_by_id = {p.chunk_id: p.text for p in await library.read_passages(scope, [m.chunk_id for m in matches])}
        ids = {text: chunk_id for chunk_id, text in texts_by_id.items()}
        examples = {ids[texts[0]]: 0.7, ids[texts[1]]: 0.3}
        related = await library.score_related(scope, "falke sensors", examples, list(texts_by_id))
        scores = {texts_by_id[match.chunk_id]: match.score for match in related}
        # "rust" marks both examples, "brine" the lighter one. The words of the query do not count.
        assert scores[texts[1]] > scores[texts[0]] > scores[texts[2]] > scores[texts[3]]
        assert await library.score_related(Scope("b"), "falke", examples, list(texts_by_id)) == []
        alone = await library.score_related(scope, "notes falke sensors hum", {ids[texts[3]]: 1.0}, list(texts_by_id))
        assert {match.score for match in alone} == {0}

    async def test_a_replaced_text_is_not_found_any_more(self, library: Library, documents: DocumentStore) -> None:
        await store(documents, "a", "falke.md", [WARRANTY, BATTERY])
        await store(documents, "a", "falke.md", [BATTERY, VERSION])
        assert await library.search_lexical(Scope("a"), "warranty", 5) == []
        assert len(await library.search_dense(Scope("a"), vector_of(WARRANTY), 5)) == 2
        assert len(await library.search_lexical(Scope("a"), "battery firmware", 5)) == 2

    async def test_searches_see_their_workspace_only(self, library: Library, documents: DocumentStore) -> None:
        await store(documents, "a", "falke.md", [WARRANTY])
        other = await store(documents, "b", "falke.md", [WARRANTY, BATTERY])
        foreign = [m.chunk_id for m in await library.search_dense(Scope("b"), vector_of(WARRANTY), 5)]
        assert len(foreign) == 2
        assert await library.search_lexical(Scope("a"), "battery", 5) == []
        assert len(await library.search_dense(Scope("a"), vector_of(BATTERY), 5)) == 1
        assert await library.read_passages(Scope("a"), foreign) == []
        assert await library.search_dense(Scope("a", (other.id,)), vector_of(WARRANTY), 5) == []
        assert await library.search_lexical(Scope("a", (other.id,)), "warranty", 5) == []
        assert await library.list_recent(Scope("a", (other.id,)), 5) == []
        assert await library.search_dense(Scope("nobody"), vector_of(WARRANTY), 5) == []
        assert await library.search_lexical(Scope("nobody"), "warranty", 5) == []

    async def test_searches_see_the_chosen_documents_only(self, library: Library, documents: DocumentStore) -> None:
        falke = await store(documents, "a", "falke.md", [WARRANTY, BATTERY])
        amsel = await store(documents, "a", "amsel.md", [WARRANTY, VERSION])
        scope = Scope("a", (amsel.id,))
        dense = await library.search_dense(scope, vector_of(BATTERY), 10)
        lexical = await library.search_lexical(scope, "warranty battery", 10)
        assert {m.document_id for m in dense} == {m.document_id for m in lexical} == {amsel.id}
        assert (len(dense), len(lexical)) == (2, 1)
        outside = [m.chunk_id for m in await library.search_lexical(Scope("a", (falke.id,)), "battery", 1)]
        assert await library.read_passages(scope, outside) == []
        assert await library.score_dense(scope, vector_of(BATTERY), outside) == []
        assert await library.score_lexical(scope, "battery", outside) == []
        assert await library.score_related(scope, "battery", {outside[0]: 1.0}, outside) == []
        nothing = Scope("a", ())
        assert await library.search_dense(nothing, vector_of(BATTERY), 10) == []
        assert await library.search_lexical(nothing, "warranty battery", 10) == []
        assert await library.list_recent(nothing, 10) == []

    async def test_neighbours_are_read_within_document_and_scope(
        self, library: Library, documents: DocumentStore
    ) -> None:
        falke = await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN, VERSION])
        await store(documents, "a", "amsel.md", [WARRANTY, BATTERY])
        [match] = await library.search_dense(Scope("a", (falke.id,)), vector_of(INTERLEUKIN), 1)
        around = await library.read_around(Scope("a"), [match.chunk_id, "no id"], before=1, after=5)
        assert sorted((p.chunk_index, p.text) for p in around) == [(1, BATTERY), (2, INTERLEUKIN), (3, VERSION)]
        assert {p.document_id for p in around} == {falke.id}
        assert await library.read_around(Scope("a", ()), [match.chunk_id], before=1, after=5) == []
        assert await library.read_around(Scope("b"), [match.chunk_id], before=1, after=5) == []

    async def test_passages_come_whole_and_in_the_order_asked_for(
        self, library: Library, documents: DocumentStore
    ) -> None:
        document = await store(documents, "a", "falke.md", [WARRANTY, BATTERY, VERSION], title="Falke")
        ids = [m.chunk_id for m in await library.search_dense(Scope("a"), vector_of(VERSION), 3)]
        for order in (ids, ids[::-1]):
            passages = await library.read_passages(Scope("a"), [order[0], str(uuid4()), "no id", *order[1:]])
            assert [p.chunk_id for p in passages] == order
        [passage] = await library.read_passages(Scope("a"), ids[:1])
        text = await documents.get_text("a", document.id)
        assert text is not None
        assert passage.text == text[passage.start : passage.end] == VERSION
        assert (passage.document_id, passage.title, passage.heading_path) == (document.id, "Falke", ("Falke",))
        assert (passage.chunk_index, passage.page) == (2, 1)
        [line] = passage.lines
        assert (line.start, line.end, line.page) == (passage.start, passage.end, 1)
        assert line.box == {"x": 10.5, "y": 4.0, "width": 80.0, "height": 1.5}

    async def test_documents_are_found_by_their_titles(self, library: Library, documents: DocumentStore) -> None:
        film = await store(documents, "a", "1", [WARRANTY, BATTERY], title="Falke (film)")
        await store(documents, "a", "2", [VERSION], title="Falke")
        leave = await store(documents, "a", "3", [INTERLEUKIN], title="Parental Leave Policy")
        await store(documents, "a", "4", [VERSION], title="A" * 10_000)
        await store(documents, "b", "1", [WARRANTY], title="Falke")
        names = ["falke", "Parental leave policy", "Station", "A" * 200, "Falk"]
        matches = await library.search_titled(Scope("a"), names, vector_of(BATTERY))
        assert matches[0].document_id == film.id
        assert matches[0].score == pytest.approx(1, abs=1e-5)
        passages = await library.read_passages(Scope("a"), [m.chunk_id for m in matches])
        assert {p.text for p in passages} == {BATTERY, INTERLEUKIN, VERSION}
        assert [m.score for m in matches] == sorted((m.score for m in matches), reverse=True)
        [match] = await library.search_titled(Scope("a", (leave.id,)), names, vector_of(BATTERY))
        assert match.document_id == leave.id
        assert await library.search_titled(Scope("a", ()), names, vector_of(BATTERY)) == []
        assert await library.search_titled(Scope("a"), [], vector_of(BATTERY)) == []
        for number in range(11):
            await store(documents, "a", f"overview {number}", [BATTERY], title="Overview")
        assert await library.search_titled(Scope("a"), ["Overview"], vector_of(BATTERY)) == []

    async def test_the_nearest_known_word_is_suggested_for_a_misspelt_one(
        self, library: Library, documents: DocumentStore
    ) -> None:
        await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN, VERSION])
        misspelt = {
            "waranty": "warranty",
            "warrrnty": "warranty",
            "warrantty": "warranty",
            "wararnty": "warranty",
            "fakle": "falke",
            "ralke": "falke",
            "firmwrae": "firmware",
            "intrudoces": "introduces",
        }
        # Known words: from the documents, in another form, or common English.
        right = ["battery", "replacing", "garden"]
        strange = ["xylophon", "fkael", "lats", "nod", "il7"]
        found: dict[str, str] = {}
        for word in [*misspelt, *right, *strange]:
            found |= await library.suggest_words(Scope("a"), ["station", word], None, "en")
        assert found == misspelt

    async def test_words_of_the_language_are_right(self, library: Library, documents: DocumentStore) -> None:
        await store(documents, "a", "a.md", ["Chats with each Fahrer about access to his Kosten on Urlaubstagen."])
        words = ["kostet", "fahre", "acces", "urlaubstage"]
        assert await library.suggest_words(Scope("a"), words, None, "de") == {"acces": "access"}
        assert await library.suggest_words(Scope("a"), words, None, "en") == {
            "kostet": "kosten", "fahre": "fahrer", "acces": "access", "urlaubstage": "urlaubstagen",
        }  # fmt: skip

    async def test_the_most_common_of_the_nearest_words_is_meant(
        self, library: Library, documents: DocumentStore
    ) -> None:
        near = ["Zandel one.", "Zondel two.", "Zondel three.", "Wundel: four, five."]
        begun = ["Interleukin one.", "Interleukin two.", "Interlaken three."]
        await store(documents, "a", "a.md", [WARRANTY, "Mann", *near, *begun])
        for words, unfinished, meant in (
            (["wich", "manny", "betwen"], None, {"wich": "which", "manny": "many", "betwen": "between"}),
            (["zundel"], None, {"zundel": "zondel"}),
            (["interl"], "interl", {"interl": "interleukin"}),
            (["interla"], "interla", {"interla": "interlaken"}),
            (["interl"], None, {}),
        ):
            assert await library.suggest_words(Scope("a"), words, unfinished, "en") == meant

    async def test_only_words_that_the_workspace_holds_now_are_suggested(
        self, library: Library, documents: DocumentStore
    ) -> None:
        await store(documents, "b", "falke.md", [WARRANTY])
        assert await library.suggest_words(Scope("a"), ["waranty"], None, "en") == {}
        document = await store(documents, "a", "falke.md", [WARRANTY, BATTERY])
        assert await library.suggest_words(Scope("a"), ["waranty", "battrey"], None, "en") == {
            "waranty": "warranty",
            "battrey": "battery",
        }
        await store(documents, "a", "falke.md", [BATTERY])
        assert await library.suggest_words(Scope("a"), ["waranty"], None, "en") == {}
        await documents.delete("a", document.id)
        assert await library.suggest_words(Scope("a"), ["battrey"], None, "en") == {}
        assert await library.suggest_words(Scope("b"), ["waranty"], None, "en") == {"waranty": "warranty"}

    async def test_the_number_of_corrected_words_is_limited(self, library: Library, documents: DocumentStore) -> None:
        words = ["quorbel", "zandrik", "mulvane", "terquist", "holbrant", "wexlund", "pryzmot"]
        await store(documents, "a", "a.md", [" ".join(words)])
        misspelt = [f"{word[:3]}{word[4]}{word[3]}{word[5:]}" for word in words]
        meant = await library.suggest_words(Scope("a"), misspelt, None, "en")
        assert meant == dict(zip(misspelt[:5], words[:5], strict=True))

    async def test_titles_come_most_recent_first(self, library: Library, documents: DocumentStore) -> None:
        for title in ("First", "Second", "Third"):
            await store(documents, "a", f"{title}.md", [WARRANTY], title=title)
        await store(documents, "a", "First.md", [BATTERY], title="First again")
        assert [each.title for each in await library.list_recent(Scope("a"), 2)] == ["First again", "Third"]

    async def test_documents_are_listed_by_source_with_the_number_of_all(
        self, library: Library, documents: DocumentStore
    ) -> None:
        stored = [await store(documents, "a", f"{name}.md", [WARRANTY], title=name) for name in ("c", "a", "b")]
        await store(documents, "b", "d.md", [WARRANTY], title="d")
        listed = await library.list_documents(Scope("a"), 5)
        assert ({each.title for each in listed.documents}, listed.total) == ({"a", "b", "c"}, 3)
        assert [each.source for each in listed.documents] == sorted(each.source for each in listed.documents)
        some = await library.list_documents(Scope("a"), 2)
        assert (some.documents, some.total) == (listed.documents[:2], 3)
        chosen = await library.list_documents(Scope("a", (stored[0].id,)), 2)
        assert ([each.id for each in chosen.documents], chosen.total) == ([stored[0].id], 1)
        nothing = await library.list_documents(Scope("none"), 2)
        assert (nothing.documents, nothing.total) == ((), 0)

    async def test_an_outline_is_the_document_in_order(self, library: Library, documents: DocumentStore) -> None:
        document = await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN])
        other = await store(documents, "a", "other.md", [VERSION])
        outline = await library.read_outline(Scope("a"), document.id, 2)
        assert [passage.text for passage in outline] == [WARRANTY, BATTERY]
        [second] = await library.read_outline(Scope("a"), document.id, 9, (outline[1].start, outline[1].end))
        assert second == outline[1]
        across = await library.read_outline(Scope("a"), document.id, 9, (outline[0].end - 1, outline[1].start + 1))
        assert across == outline
        assert await library.read_outline(Scope("a", (other.id,)), document.id, 2) == []
        assert await library.read_outline(Scope("b"), document.id, 2) == []
        assert await library.read_outline(Scope("a"), "no document", 2) == []

    async def test_a_text_is_found_letter_by_letter(self, library: Library, documents: DocumentStore) -> None:
        codes = ["Error E-0.135 means that the lid is open.", "Error E-0x135 means nothing.", "See e-0.135 and 100 %."]
        document = await store(documents, "a", "codes.md", codes)
        other = await store(documents, "a", "other.md", ["E-0.135 again.", VERSION])
        found = await library.find_text(Scope("a", (document.id,)), "E-0.135", 9)
        assert ([passage.text for passage in found.passages], found.total) == ([codes[0], codes[2]], 2)
        some = await library.find_text(Scope("a"), "E-0.135", 2)
        assert (len(some.passages), some.total) == (2, 3)
        percent = await library.find_text(Scope("a"), "0 %", 9)
        assert [passage.text for passage in percent.passages] == [codes[2]]
        chosen = await library.find_text(Scope("a", (other.id,)), "E-0.135", 9)
        assert ([passage.document_id for passage in chosen.passages], chosen.total) == ([other.id], 1)
        nothing = await library.find_text(Scope("b"), "E-0.135", 9)
        assert (nothing.passages, nothing.total) == ((), 0)

    async def test_chunks_stand_at_their_offsets_in_the_text(self, library: Library, documents: DocumentStore) -> None:
        document = await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN])
        other = await store(documents, "a", "other.md", [VERSION])
        [read, _] = await library.read_texts(Scope("a"), [document.id, "no document", other.id])
        text = read.text
        assert (read.id, read.source) == (document.id, document.source)
        chunks = await library.read_outline(Scope("a"), document.id, 3)
        assert [text[chunk.start : chunk.end] for chunk in chunks] == [WARRANTY, BATTERY, INTERLEUKIN]
        assert await library.read_texts(Scope("a", (other.id,)), [document.id]) == []
        assert await library.read_texts(Scope("b"), [document.id]) == []
