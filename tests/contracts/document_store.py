"""The contract of `DocumentStore`. An adapter's tests inherit from the class and provide the fixtures `documents`
and `library`, both over the same empty store."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from domain.documents import Passage
from domain.errors import InputError, UnknownDocument
from domain.library.browsing import View
from domain.library.metadata import Metadata
from domain.library.where import Where
from domain.ports.documents import ChunkVectors, DocumentContent, DocumentStore
from domain.ports.library import Library
from domain.scope import Scope
from tests.contracts.corpus import digest, split, store, vector_of

ALPHA, BETA, GAMMA = "Alpha comes first.", "Beta follows alpha.", "Gamma closes the row."


async def read_all(library: Library, workspace_id: str = "a") -> list[Passage]:
    """Return every chunk, in document order."""
    matches = await library.search_dense(Scope(workspace_id), vector_of(ALPHA), 1000)
    passages = await library.read_passages(Scope(workspace_id), [m.chunk_id for m in matches])
    return sorted(passages, key=lambda p: (p.document_id, p.chunk_index))


class DocumentStoreContract:
    async def test_keeps_what_it_was_given(self, documents: DocumentStore) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA, BETA], title="Greek 🏛 𝛂")
        assert (document.workspace_id, document.source, document.title) == ("a", "greek.md", "Greek 🏛 𝛂")
        assert (document.pages, document.chunks, document.media_type) == (1, 2, "text/plain")
        text = f"{ALPHA}\n\n{BETA}"
        assert (document.characters, document.content_hash) == (len(text), digest(text))
        assert await documents.get_text("a", document.id) == text
        assert await documents.get("a", document.id) == document
        assert await documents.find("a", "greek.md") == document
        assert list(await documents.list("a")) == [document]

    async def test_unknown_documents_are_none(self, documents: DocumentStore) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA])
        for workspace_id, document_id in (("b", document.id), ("a", str(uuid4())), ("a", "no id"), ("a", "")):
            assert await documents.get(workspace_id, document_id) is None
            assert await documents.get_text(workspace_id, document_id) is None
            assert await documents.stored_hashes(workspace_id, document_id) == frozenset()
            assert not await documents.delete(workspace_id, document_id)
        assert await documents.find("b", "greek.md") is None
        assert list(await documents.list("b")) == []
        assert await documents.get("a", document.id) is not None

    async def test_lists_the_documents_that_pass_a_filter(self, documents: DocumentStore) -> None:
        greek = await store(documents, "a", "hr/greek.md", [ALPHA], metadata={"team": "hr", "tags": ["x", "y"]})
        latin = await store(documents, "a", "legal/latin.md", [BETA], metadata={"team": "legal"})
        assert greek.metadata == {"team": "hr", "tags": ["x", "y"]}
        wanted = {
            "team=hr": [greek],
            "path^=legal/": [latin],
            "path=hr/greek.md and tags=y": [greek],
            "path^=legal/ and team=hr": [],
            "path in (hr/greek.md, legal/latin.md)": [greek, latin],
        }
        assert {text: await documents.list("a", Where.parse(text)) for text in wanted} == wanted

    async def test_a_library_is_looked_through_by_folder_words_and_metadata(self, documents: DocumentStore) -> None:
        for source, team, size in (
            ("/docs/hr/leave/annual.md", "hr", 2),
            ("/docs/hr/100%.md", "hr", 1),
            ("/docs/legal/latin.md", "legal", 3),
            ("/docs/zoo.md", "legal", 1),
        ):
            metadata: Metadata = {"team": team, "own": source, "everywhere": True}
            await store(documents, "a", source, [ALPHA, BETA, GAMMA][:size], title=source[-8:], metadata=metadata)
        await store(documents, "b", "/docs/hr/other.md", [ALPHA])

        async def see(where: str | None = None, groups: frozenset[str] | None = None, **view: Any) -> Any:
            found = await documents.browse(Scope("a", where=Where.parse_option(where), groups=groups), View(**view))
            sources = [document.source.removeprefix("/docs/") for document in found.documents]
            return found.all, found.total, found.folder, [(f.path, f.documents) for f in found.folders], sources

        folders = [("/docs/hr/", 2), ("/docs/legal/", 1)]
        assert await see() == (4, 4, "/docs/", folders, ["zoo.md"])
        assert await see(folder="/docs/hr/") == (4, 2, "/docs/hr/", [("/docs/hr/leave/", 1)], ["hr/100%.md"])
        await store(documents, "c", "/tmp/one/two/x.md", [ALPHA])
        await store(documents, "c", "/srv/y.md", [ALPHA])
        await store(documents, "c", "z.md", [ALPHA])
        apart = await documents.browse(Scope("c"), View())
        # What holds nothing but one other folder is that one, and the root has no name of its own.
        assert [each.path for each in apart.folders] == ["/srv/", "/tmp/one/two/"]
        assert (apart.folder, [each.source for each in apart.documents]) == ("", ["z.md"])
        found = await see(words="DOCS %")
        assert found == (4, 1, "", [], ["hr/100%.md"])
        assert (await see("team=legal", order="largest"))[1:] == (2, "", [], ["legal/latin.md", "zoo.md"])
        assert (await see(words="docs", order="newest", limit=2, offset=1))[4] == ["legal/latin.md", "hr/100%.md"]
        assert (await see(folder="/docs/hr/leave/"))[2] == "/docs/hr/leave/"
        assert await see(words="none", groups=frozenset({"x"})) == (4, 0, "", [], [])
        choices = (await documents.browse(Scope("a"), View())).choices
        assert [(each.key, each.value, each.documents) for each in choices] == [("team", "hr", 2), ("team", "legal", 2)]
        zoo = await documents.find("a", "/docs/zoo.md")
        assert zoo is not None
        await documents.set_groups("a", zoo.id, ["board"])
        assert await see(groups=frozenset({"x"})) == (3, 3, "/docs/", folders, [])

    async def test_changed_metadata_changes_nothing_else(self, documents: DocumentStore, library: Library) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA, BETA], metadata={"team": "hr"})
        before, chunks = await documents.corpus_fingerprint(Scope("a")), await read_all(library)
        chosen = await documents.corpus_fingerprint(Scope("a", (document.id,)))
        arrival = await documents.number_arrival("a")
        assert await documents.confirm("a", document, arrival, {"team": "hr"})
        assert await documents.corpus_fingerprint(Scope("a")) == before
        assert not await documents.confirm("a", document, arrival, {"team": "legal"})
        changed = await documents.set_metadata("a", document, arrival, {"team": "legal"})
        assert changed is not None
        assert changed.metadata == {"team": "legal"}
        assert await documents.get("a", document.id) == changed
        assert await read_all(library) == chunks
        assert await documents.corpus_fingerprint(Scope("a")) != before
        assert await documents.corpus_fingerprint(Scope("a", (document.id,))) != chosen
        for where in (Where.parse("team=hr"), Where.parse("team=legal")):
            found = await library.search_dense(Scope("a", where=where), vector_of(ALPHA), 10)
            assert len(found) == (2 if "legal" in str(where) else 0)

    async def test_metadata_that_came_earlier_changes_nothing(self, documents: DocumentStore) -> None:
        early = await documents.number_arrival("a")
        document = await store(documents, "a", "greek.md", [ALPHA], metadata={"team": "hr"})
        assert await documents.set_metadata("a", document, early, {"team": "legal"}) is None
        assert await documents.confirm("a", document, early, {"team": "legal"})
        kept = await documents.get("a", document.id)
        assert kept is not None
        assert kept.metadata == {"team": "hr"}

    async def test_the_same_source_is_the_same_document(self, documents: DocumentStore) -> None:
        first = await store(documents, "a", "greek.md", [ALPHA])
        second = await store(documents, "a", "greek.md", [ALPHA, BETA], title="Handbook")
        other = await store(documents, "b", "greek.md", [ALPHA])
        assert first.id == second.id != other.id
        assert first.created_at == second.created_at < second.updated_at
        assert await documents.get("a", first.id) == second

    async def test_unchanged_chunks_keep_their_id_and_move(self, documents: DocumentStore, library: Library) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA, BETA])
        before = {p.text: p for p in await read_all(library)}
        assert await documents.stored_hashes("a", document.id) == {digest(f"Handbook\n{t}") for t in (ALPHA, BETA)}
        await store(documents, "a", "greek.md", [GAMMA, BETA])
        after = await read_all(library)
        assert [p.text for p in after] == [GAMMA, BETA]
        assert after[1].chunk_id == before[BETA].chunk_id
        assert after[1].start == len(GAMMA) + 2 != before[BETA].start
        assert after[1].lines[0].start == after[1].start
        assert await documents.stored_hashes("a", document.id) == {digest(f"Handbook\n{t}") for t in (GAMMA, BETA)}

    async def test_a_chunk_that_comes_back_has_its_old_id(self, documents: DocumentStore, library: Library) -> None:
        await store(documents, "a", "greek.md", [ALPHA])
        [before] = await read_all(library)
        await store(documents, "a", "greek.md", [BETA])
        await store(documents, "a", "greek.md", [ALPHA])
        [after] = await read_all(library)
        assert after.chunk_id == before.chunk_id
        assert (await store(documents, "a", "greek.md", [])).chunks == 0
        assert await read_all(library) == []

    async def test_chunks_with_the_same_text_have_different_ids(
        self, documents: DocumentStore, library: Library
    ) -> None:
        await store(documents, "a", "greek.md", [ALPHA])
        repeated = await store(documents, "a", "greek.md", [ALPHA, BETA, ALPHA])
        passages = await read_all(library)
        assert [p.text for p in passages] == [ALPHA, BETA, ALPHA]
        assert len({p.chunk_id for p in passages}) == repeated.chunks == 3
        assert [m.score for m in await library.search_dense(Scope("a"), vector_of(ALPHA), 2)] == pytest.approx([1, 1])

    async def test_delete_removes_everything(self, documents: DocumentStore, library: Library) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA])
        await store(documents, "a", "latin.md", [BETA])
        assert not await documents.delete("b", document.id)
        assert await documents.delete("a", document.id)
        assert not await documents.delete("a", document.id)
        assert [p.text for p in await read_all(library)] == [BETA]
        assert await library.search_lexical(Scope("a"), "first", 5) == []
        assert [d.source for d in await documents.list("a")] == ["latin.md"]

    async def test_clear_removes_the_workspace_s_documents_and_no_others(
        self, documents: DocumentStore, library: Library
    ) -> None:
        await store(documents, "a", "greek.md", [ALPHA, BETA])
        await store(documents, "b", "greek.md", [ALPHA])
        before = await documents.corpus_fingerprint(Scope("a"))
        await documents.clear("a")
        await documents.clear("never held anything")
        assert await documents.list("a") == []
        assert await read_all(library) == []
        assert await library.search_lexical(Scope("a"), "first", 5) == []
        assert await documents.corpus_fingerprint(Scope("a")) != before
        assert [p.text for p in await read_all(library, "b")] == [ALPHA]
        await store(documents, "a", "greek.md", [BETA])
        assert [p.text for p in await read_all(library)] == [BETA]

    async def test_a_failed_change_changes_nothing(self, documents: DocumentStore, library: Library) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA])
        before = await documents.corpus_fingerprint(Scope("a"))
        with pytest.raises(InputError):
            await store(documents, "a", "greek.md", [BETA, "A NUL\x00 character"])
        assert await documents.get("a", document.id) == document
        assert [p.text for p in await read_all(library)] == [ALPHA]
        assert await documents.corpus_fingerprint(Scope("a")) == before

    async def test_concurrent_changes_of_one_document_follow_each_other(
        self, documents: DocumentStore, library: Library
    ) -> None:
        async def put(number: int) -> None:
            parsed, chunks = split("Handbook", [ALPHA, f"Paragraph {number} of its own.", f"Another {number}."])
            vectors = {c.content_hash: ChunkVectors(vector_of(c.text)) for c in chunks}
            await documents.replace("a", DocumentContent("greek.md", digest(parsed.text), parsed, chunks, vectors))

        await asyncio.gather(*(put(number) for number in range(12)))
        passages = await read_all(library)
        assert [p.chunk_index for p in passages] == [0, 1, 2]
        [number] = {p.text.rstrip(".").split()[1] for p in passages[1:]}
        document = await documents.find("a", "greek.md")
        assert document is not None
        assert document.content_hash == digest(split("", [p.text for p in passages])[0].text)
        assert {p.text for p in passages} == {ALPHA, f"Paragraph {number} of its own.", f"Another {number}."}

    async def test_concurrent_changes_of_many_documents(self, documents: DocumentStore, library: Library) -> None:
        words = ["river", "mountain", "forest", "desert", "island", "valley"]
        paragraphs = [" ".join(words[i:] + words[:i]) for i in range(6)]
        for _ in range(2):
            await asyncio.gather(
                *(store(documents, "a", f"{i}.md", paragraphs[i % 6 :], title=f"T{i}") for i in range(12))
            )
        removed = await documents.find("a", "0.md")
        assert removed is not None
        await asyncio.gather(
            documents.delete("a", removed.id), *(store(documents, "a", f"{i}.md", paragraphs[:2]) for i in range(1, 12))
        )
        assert len(await read_all(library)) == 22
        assert len(await library.search_lexical(Scope("a"), "river", 100)) == 22

    async def test_fingerprint_of_a_workspace_changes_with_every_change(self, documents: DocumentStore) -> None:
        seen = [await documents.corpus_fingerprint(Scope("a"))]
        document = await store(documents, "a", "greek.md", [ALPHA])
        seen.append(await documents.corpus_fingerprint(Scope("a")))
        await store(documents, "a", "greek.md", [BETA])
        seen.append(await documents.corpus_fingerprint(Scope("a")))
        await documents.delete("a", document.id)
        seen.append(await documents.corpus_fingerprint(Scope("a")))
        await store(documents, "b", "greek.md", [BETA])
        assert len(set(seen)) == 4
        assert await documents.corpus_fingerprint(Scope("a")) == seen[-1]

    async def test_fingerprint_of_documents_changes_with_these_only(self, documents: DocumentStore) -> None:
        greek = await store(documents, "a", "greek.md", [ALPHA])
        latin = await store(documents, "a", "latin.md", [ALPHA])
        before = await documents.corpus_fingerprint(Scope("a", (greek.id,)))
        both = await documents.corpus_fingerprint(Scope("a", (greek.id, latin.id)))
        assert both == await documents.corpus_fingerprint(Scope("a", (latin.id, greek.id))) != before
        await store(documents, "a", "latin.md", [BETA])
        assert await documents.corpus_fingerprint(Scope("a", (greek.id,))) == before
        assert await documents.corpus_fingerprint(Scope("a", (greek.id, latin.id))) != both
        await store(documents, "a", "greek.md", [GAMMA])
        assert await documents.corpus_fingerprint(Scope("a", (greek.id,))) != before

    async def test_fingerprint_names_the_document_that_does_not_exist(self, documents: DocumentStore) -> None:
        document = await store(documents, "a", "greek.md", [ALPHA])
        for missing in (str(uuid4()), "no-id"):
            with pytest.raises(UnknownDocument, match=missing):
                await documents.corpus_fingerprint(Scope("a", (document.id, missing)))
        with pytest.raises(UnknownDocument, match=document.id):
            await documents.corpus_fingerprint(Scope("b", (document.id,)))
