"""The contract of `AssistantStore`. An adapter's tests inherit from the class and provide the fixture `assistants`, an
empty store."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from domain import assistants as limits
from domain.assistants import Draft
from domain.errors import AssistantError, NameTaken, UnknownAssistant
from domain.ports.assistants import AssistantStore
from domain.scope import Scope

A, B = Scope("a"), Scope("b")


def draft(name: str = "legal", **fields: Any) -> Draft:
    return Draft.model_validate({"name": name, **fields})


class AssistantStoreContract:
    async def test_every_change_is_a_version_and_one_is_current(self, assistants: AssistantStore) -> None:
        whole = draft(
            description="For the lawyers. 🏛",
            mode="thorough",
            instructions="Name the clause.",
            document_ids=["b", "a"],
            filter={"team": "legal", "year": {"gte": 2024}},
            length="detailed",
            language="de",
            models={"large": "gpt-4.1"},
            metadata={"owner": {"name": "Ann"}},
        )
        key = str(uuid4())
        first = await assistants.add(A, key, whole, "ann")
        assert (first.assistant_id, first.version, first.name, first.created_by) == (key, 1, "legal", "ann")
        assert (first.setup, first.description, first.metadata) == (whole.setup, whole.description, whole.metadata)
        assert first.created_at == first.updated_at
        second = await assistants.change(A, key, draft("Law"), "ben")
        assert (second.version, second.name, second.created_by, second.setup) == (2, "Law", "ben", draft().setup)
        assert second.created_at == first.created_at < second.updated_at
        assert await assistants.list(A) == [second]
        assert await assistants.list_versions(A, key) == [second, first]
        assert await assistants.find(A, "LAW") == await assistants.find(A, key) == second
        assert await assistants.find(A, "law", 1) == await assistants.find(A, key, 1) == first
        assert await assistants.find(A, "legal") is None
        assert await assistants.find(A, "law", 3) is None
        assert await assistants.choose(A, key, 1) == first
        assert await assistants.list(A) == [first]
        assert await assistants.choose(A, key, 3) is None
        assert await assistants.choose(A, "legal", 1) is None
        assert await assistants.list(A) == [first]
        # What comes next counts on.
        assert (await assistants.change(A, key, draft(), "ann")).version == 3

    async def test_workspaces_know_nothing_of_each_other(self, assistants: AssistantStore) -> None:
        key = str(uuid4())
        mine = await assistants.add(A, key, draft(), "ann")
        theirs = await assistants.add(B, key, draft(), "ben")
        assert await assistants.delete(B, key)
        assert not await assistants.delete(B, key)
        assert await assistants.choose(B, key, 1) is None
        assert [await assistants.find(B, each) for each in ("legal", key)] == [None, None]
        assert await assistants.list(B) == await assistants.list_versions(B, key) == []
        assert await assistants.list(A) == await assistants.list_versions(A, key) == [mine]
        assert theirs.created_by == "ben"

    async def test_a_name_is_of_one_assistant(self, assistants: AssistantStore) -> None:
        one, other = str(uuid4()), str(uuid4())
        first = await assistants.add(A, one, draft("Legal"), "ann")
        with pytest.raises(NameTaken, match="'LEGAL'"):
            await assistants.add(A, other, draft("LEGAL"), "ann")
        renamed = await assistants.change(A, one, draft("law"), "ann")
        taken = await assistants.add(A, other, draft("legal"), "ann")
        with pytest.raises(NameTaken, match="'Legal'"):
            await assistants.choose(A, one, 1)
        assert await assistants.list(A) == [renamed, taken]
        assert await assistants.find(A, "law", 1) == first

    async def test_names_are_compared_as_people_see_them(self, assistants: AssistantStore) -> None:
        first = await assistants.add(A, str(uuid4()), draft("Straße 5"), "ann")
        for name in ("STRASSE 5", "Ｓtrasse 5", "Strаße 5"):
            with pytest.raises(NameTaken):
                await assistants.add(A, str(uuid4()), draft(name), "ann")
        assert await assistants.find(A, "ＳTRASSE 5") == first
        assert await assistants.add(A, str(uuid4()), draft("Straße 6"), "ann")
        assert await assistants.add(A, str(uuid4()), draft("Улица 55"), "ann")

    async def test_an_assistant_of_groups_is_there_for_them_alone(self, assistants: AssistantStore) -> None:
        key = str(uuid4())
        ours, theirs, nobody = (Scope("a", groups=frozenset(groups)) for groups in (["us", "x"], ["them"], []))
        first = await assistants.add(ours, key, draft(groups=["us"]), "ann")
        assert first.groups == ["us"]
        for stranger in (theirs, nobody):
            assert await assistants.list(stranger) == await assistants.list_versions(stranger, key) == []
            assert [await assistants.find(stranger, each) for each in ("legal", key)] == [None, None]
            assert await assistants.choose(stranger, key, 1) is None
            assert not await assistants.delete(stranger, key)
            with pytest.raises(UnknownAssistant):
                await assistants.change(stranger, key, draft(), "ben")
            with pytest.raises(NameTaken):
                await assistants.add(stranger, str(uuid4()), draft(), "ben")
        # Of all versions, also those before; unset, they stay.
        second = await assistants.change(ours, key, draft(groups=["x"]), "ann")
        assert [each.groups for each in await assistants.list_versions(A, key)] == [["x"], ["x"]]
        assert (await assistants.change(A, key, draft(), "owner")).groups == second.groups == ["x"]
        assert await assistants.choose(ours, key, 1) is not None
        assert (await assistants.change(ours, key, draft(groups=[]), "ann")).groups == []
        assert [each.version for each in await assistants.list(theirs)] == [4]

    async def test_changes_at_once_are_versions_one_after_the_other(self, assistants: AssistantStore) -> None:
        key = str(uuid4())
        made = await asyncio.gather(*(assistants.add(A, key, draft(), "ann") for _ in range(3)), return_exceptions=True)
        assert sorted(type(each).__name__ for each in made) == ["Assistant", "NameTaken", "NameTaken"]
        changed = await asyncio.gather(*(assistants.change(A, key, draft(), str(each)) for each in range(4)))
        assert sorted(each.version for each in changed) == [2, 3, 4, 5]
        assert [each.version for each in await assistants.list(A)] == [5]
        with pytest.raises(UnknownAssistant):
            await assistants.change(A, str(uuid4()), draft("other"), "ann")

    async def test_there_is_a_limit(self, assistants: AssistantStore) -> None:
        keys = [str(uuid4()) for _ in range(limits.MOST_ASSISTANTS)]
        for number, key in enumerate(keys):
            await assistants.add(A, key, draft(str(number)), "ann")
        with pytest.raises(AssistantError, match="has 100 assistants"):
            await assistants.add(A, str(uuid4()), draft(), "ann")
        assert (await assistants.change(A, keys[0], draft(), "ann")).version == 2
        assert await assistants.delete(A, keys[0])
        assert (await assistants.add(A, str(uuid4()), draft(), "ann")).version == 1
