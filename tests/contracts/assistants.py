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
        first = await assistants.add("a", key, whole, "ann")
        assert (first.assistant_id, first.version, first.name, first.created_by) == (key, 1, "legal", "ann")
        assert (first.setup, first.description, first.metadata) == (whole.setup, whole.description, whole.metadata)
        assert first.created_at == first.updated_at
        second = await assistants.change("a", key, draft("Law"), "ben")
        assert (second.version, second.name, second.created_by, second.setup) == (2, "Law", "ben", draft().setup)
        assert second.created_at == first.created_at < second.updated_at
        assert await assistants.list("a") == [second]
        assert await assistants.list_versions("a", key) == [second, first]
        assert await assistants.find("a", "LAW") == await assistants.find("a", key) == second
        assert await assistants.find("a", "law", 1) == await assistants.find("a", key, 1) == first
        assert await assistants.find("a", "legal") is None
        assert await assistants.find("a", "law", 3) is None
        assert await assistants.choose("a", key, 1) == first
        assert await assistants.list("a") == [first]
        assert await assistants.choose("a", key, 3) is None
        assert await assistants.choose("a", "legal", 1) is None
        assert await assistants.list("a") == [first]
        # What comes next counts on.
        assert (await assistants.change("a", key, draft(), "ann")).version == 3

    async def test_workspaces_know_nothing_of_each_other(self, assistants: AssistantStore) -> None:
        key = str(uuid4())
        mine = await assistants.add("a", key, draft(), "ann")
        theirs = await assistants.add("b", key, draft(), "ben")
        assert await assistants.delete("b", key)
        assert not await assistants.delete("b", key)
        assert await assistants.choose("b", key, 1) is None
        assert [await assistants.find("b", each) for each in ("legal", key)] == [None, None]
        assert await assistants.list("b") == await assistants.list_versions("b", key) == []
        assert await assistants.list("a") == await assistants.list_versions("a", key) == [mine]
        assert theirs.created_by == "ben"

    async def test_a_name_is_of_one_assistant(self, assistants: AssistantStore) -> None:
        one, other = str(uuid4()), str(uuid4())
        first = await assistants.add("a", one, draft("Legal"), "ann")
        with pytest.raises(NameTaken, match="'LEGAL'"):
            await assistants.add("a", other, draft("LEGAL"), "ann")
        renamed = await assistants.change("a", one, draft("law"), "ann")
        taken = await assistants.add("a", other, draft("legal"), "ann")
        with pytest.raises(NameTaken, match="'Legal'"):
            await assistants.choose("a", one, 1)
        assert await assistants.list("a") == [renamed, taken]
        assert await assistants.find("a", "law", 1) == first

    async def test_changes_at_once_are_versions_one_after_the_other(self, assistants: AssistantStore) -> None:
        key = str(uuid4())
        made = await asyncio.gather(
            *(assistants.add("a", key, draft(), "ann") for _ in range(3)), return_exceptions=True
        )
        assert sorted(type(each).__name__ for each in made) == ["Assistant", "NameTaken", "NameTaken"]
        changed = await asyncio.gather(*(assistants.change("a", key, draft(), str(each)) for each in range(4)))
        assert sorted(each.version for each in changed) == [2, 3, 4, 5]
        assert [each.version for each in await assistants.list("a")] == [5]
        with pytest.raises(UnknownAssistant):
            await assistants.change("a", str(uuid4()), draft("other"), "ann")

    async def test_there_is_a_limit(self, assistants: AssistantStore) -> None:
        keys = [str(uuid4()) for _ in range(limits.MOST_ASSISTANTS)]
        for number, key in enumerate(keys):
            await assistants.add("a", key, draft(str(number)), "ann")
        with pytest.raises(AssistantError, match="has 100 assistants"):
            await assistants.add("a", str(uuid4()), draft(), "ann")
        assert (await assistants.change("a", keys[0], draft(), "ann")).version == 2
        assert await assistants.delete("a", keys[0])
        assert (await assistants.add("a", str(uuid4()), draft(), "ann")).version == 1
