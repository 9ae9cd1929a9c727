"""The modes of a workspace: those of the deployment, and the assistants that its team has made of them."""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pydantic import ValidationError

from app.modes import find_mode, vary
from domain.assistants import Assistant, Draft, Setup
from domain.errors import AskgraphError, AssistantError, FilterError, NameTaken, UnknownAssistant
from domain.library.browsing import View
from domain.library.where import Where
from domain.people.access import Caller
from domain.people.names import find_twin, fold_name
from domain.ports.assistants import AssistantStore
from domain.ports.documents import DocumentStore
from domain.profile import OfAssistant, Profile
from domain.scope import Scope

logger = logging.getLogger("askgraph.assistants")

_VERSION = re.compile("[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class WorkspaceModes:
    """Finds the profile of a mode or an assistant. No other code makes a profile of an assistant."""

    deployed: Mapping[str, Profile]
    store: AssistantStore
    documents: DocumentStore
    connected: Collection[str]
    """The names of the language models that can be asked."""

    async def find(self, asker: Scope, name: str) -> Profile:
        """Return the profile that a question is answered with: of a mode, of an assistant as it is now, or with
        `NAME@VERSION` as it was. The profile's name is the one that the run records.

        Raises `UnknownMode`, `AssistantError` and `DatabaseUnavailable`.
        """
        if mode := next((each for each in self.deployed if fold_name(each) == fold_name(name)), None):
            return self.deployed[mode]
        assistant = await self._find_assistant(asker, name)
        return find_mode(await self.list(asker), name) if assistant is None else self.resolve(assistant)

    async def list(self, asker: Scope, mode: str = "") -> dict[str, Profile]:
        """Return all modes by name, an assistant also by `NAME@VERSION`; where `mode` is one of these, that assistant's
        other versions as well. Those whose own mode is gone are left out."""
        versions: Sequence[Assistant] = ()
        if (of := mode.rpartition("@")[0]) and (found := await self.store.find(asker, of)) is not None:
            versions = await self.store.list_versions(asker, found.assistant_id)
        current = await self.store.list(asker)
        modes = dict(self.deployed)
        shown = await self.show(asker, [*versions, *current])
        for name, assistant in {each.full_name: each for each in shown}.items():
            try:
                modes[name] = self.resolve(assistant)
            except AskgraphError as error:
                logger.warning("The assistant %r cannot be used: %s", name, error.message)
        for assistant in current:
            if assistant.full_name in modes:
                modes.setdefault(assistant.name, modes[assistant.full_name])
        return modes

    async def list_names(self, asker: Scope) -> Sequence[str]:
        """Return what a question can name: the modes, and the assistants that none of them hides."""
        names = (each.name for each in await self.store.list(asker))
        return list(dict.fromkeys([*self.deployed, *names]))

    async def show(self, asker: Scope, found: Sequence[Assistant]) -> Sequence[Assistant]:
        """Return the assistants without the ids of documents that the asker may not read."""
        named = {document_id for each in found for document_id in each.setup.document_ids or ()}
        if asker.groups is None or not named:
            return found
        readable = await self.documents.read_hashes(replace(asker, document_ids=tuple(named)))
        return [replace(each, setup=_keep(each.setup, readable)) for each in found]

    async def _find_assistant(self, asker: Scope, name: str) -> Assistant | None:
        version = None
        if "@" in name:
            name, _, written = name.rpartition("@")
            if not _VERSION.fullmatch(written):
                return None
            version = int(written)
        found = await self.store.find(asker, name, version)
        return None if found is None else (await self.show(asker, [found]))[0]

    def resolve(self, assistant: Assistant) -> Profile:
        """Return the profile of a version. Raises `UnknownMode` where its mode is gone, and `AssistantError`."""
        of = OfAssistant(id=assistant.assistant_id, mode=assistant.setup.mode)
        return self.apply(assistant.setup, assistant.full_name).model_copy(update={"assistant": of})

    def apply(self, setup: Setup, name: str) -> Profile:
        """Return the mode as the setup changes it, under this name. Raises `UnknownMode` and `AssistantError`."""
        base = find_mode(self.deployed, setup.mode)
        models = {} if setup.models is None else setup.models.model_dump(exclude_none=True)
        # A deployment without any quotes in every mode.
        if self.connected and (unknown := set(models.values()) - set(self.connected)):
            known = ", ".join(sorted(self.connected))
            raise AssistantError(f"The language model {min(unknown)!r} is not connected here; {known} are.")
        kept, mine = base.documents, Scope.within("", setup.document_ids, Where.from_json(setup.filter or {}))
        documents = kept.narrow(mine)
        added = "\n\n".join(filter(None, (base.generate.system_instructions, setup.instructions)))
        changes = {
            "name": name,
            "documents": {
                "ids": None if documents.document_ids is None else list(documents.document_ids),
                "where": str(documents.where) or None,
            },
            "generate": {"system_instructions": added or None, "length": setup.length or base.generate.length},
            "language": setup.language or base.language,
            "models": models,
        }
        try:
            return vary(base.model_dump(), changes)
        except ValidationError as error:
            first = error.errors()[0]
            raise AssistantError(
                f"This does not go with the mode {setup.mode!r}: {'.'.join(map(str, first['loc']))}: {first['msg']}."
            ) from None


@dataclass(frozen=True, slots=True)
class Assistants:
    """Makes and changes assistants, and refuses what no question could be answered with."""

    modes: WorkspaceModes

    async def list(self, asker: Scope) -> Sequence[Assistant]:
        """Return the assistants that the asker may use, by name."""
        return await self.modes.show(asker, await self.modes.store.list(asker))

    async def list_versions(self, asker: Scope, assistant_id: str) -> Sequence[Assistant]:
        """Return an assistant's versions, the latest first. Raises `UnknownAssistant`."""
        versions = await self.modes.store.list_versions(asker, assistant_id)
        if not versions:
            raise unknown_assistant(assistant_id)
        return await self.modes.show(asker, versions)

    async def read(self, asker: Scope, assistant_id: str) -> Assistant:
        """Return an assistant by its id. Raises `UnknownAssistant`."""
        found = await self.find(asker, assistant_id)
        if found.assistant_id != assistant_id:
            raise unknown_assistant(assistant_id)
        return found

    async def find(self, asker: Scope, name: str) -> Assistant:
        """Return an assistant by its id or its name. Raises `UnknownAssistant`."""
        found = await self.modes.store.find(asker, name)
        if found is None:
            raise unknown_assistant(name)
        return (await self.modes.show(asker, [found]))[0]

    async def create(self, scope: Scope, draft: Draft, caller: Caller, assistant_id: str | None = None) -> Assistant:
        """Store a new assistant.

        Raises `NameTaken`, `AssistantError`, `FilterError`, `UnknownMode`, `UnknownDocument` for a document that the
        caller may not read, and what `Caller.check_groups` raises.
        """
        caller.check_groups(draft.groups or ())
        groups = sorted(caller.groups or ()) if draft.groups is None else draft.groups
        await self._check(scope, draft)
        made = draft.model_copy(update={"groups": groups})
        return await self.modes.store.add(scope, assistant_id or str(uuid4()), made, caller.name)

    async def change(self, scope: Scope, draft: Draft, caller: Caller, assistant_id: str) -> Assistant:
        """Store a further version of an assistant. Raises `UnknownAssistant`, and what `create` raises."""
        known = await self.modes.store.find(scope, assistant_id)
        if known is None or known.assistant_id != assistant_id:
            raise unknown_assistant(assistant_id)
        if draft.groups is not None:
            caller.check_groups(draft.groups, known.groups)
        [shown] = await self.modes.show(scope, [known])
        hidden = set(known.setup.document_ids or ()) - set(shown.setup.document_ids or ())
        await self._check(scope, draft, shown.setup, has_hidden=bool(hidden))
        if draft.document_ids is not None:
            # Those that the caller does not see stay.
            draft = draft.model_copy(update={"document_ids": [*draft.document_ids, *sorted(hidden)]})
        changed = await self.modes.store.change(scope, assistant_id, draft, caller.name)
        return (await self.modes.show(scope, [changed]))[0]

    async def choose(self, asker: Scope, assistant_id: str, version: int) -> Assistant:
        """Make a version the one that answers. Raises `UnknownAssistant` and `NameTaken`."""
        chosen = await self.modes.store.choose(asker, assistant_id, version)
        if chosen is None:
            raise UnknownAssistant(f"Assistant {assistant_id!r} has no version {version} in this workspace.")
        return (await self.modes.show(asker, [chosen]))[0]

    async def delete(self, asker: Scope, assistant_id: str) -> None:
        """Delete an assistant with its versions. What it has answered stays. Raises `UnknownAssistant`."""
        if not await self.modes.store.delete(asker, assistant_id):
            raise unknown_assistant(assistant_id)

    async def _check(self, scope: Scope, draft: Draft, known: Setup | None = None, *, has_hidden: bool = False) -> None:
        """Raise what is wrong with the draft, but nothing that is wrong already with what it changes. With `has_hidden`
        it answers from documents, too, that the caller does not see."""
        if twin := find_twin(draft.name, self.modes.deployed):
            looks = "is" if draft.name == twin else f"looks like {twin!r}, which is"
            raise NameTaken(f"{draft.name!r} {looks} the name of a mode.")
        if draft.document_ids == [] and not has_hidden:
            raise AssistantError("An assistant needs a document to answer from. Leave `document_ids` out for all.")
        self.modes.apply(draft.setup, draft.name)
        if draft.models is not None and any(draft.models.model_dump().values()) and not self.modes.connected:
            raise AssistantError("No language model is connected here, so none can be named.")
        kept = known or Setup()
        if added := set(draft.document_ids or ()) - set(kept.document_ids or ()):
            await self.modes.documents.corpus_fingerprint(replace(scope, document_ids=tuple(added)))
        where = Where.from_json((draft.filter != kept.filter and draft.filter) or {})
        if where and not (await self.modes.documents.browse(replace(scope, where=where), View(limit=0))).total:
            raise FilterError(f"No document that you may read passes the filter {where}. Check its keys and values.")


def _keep(setup: Setup, readable: Collection[str]) -> Setup:
    if setup.document_ids is None:
        return setup
    return setup.model_copy(update={"document_ids": [each for each in setup.document_ids if each in readable]})


def unknown_assistant(assistant_id: str) -> UnknownAssistant:
    """Return the error for an id or a name that no assistant has."""
    return UnknownAssistant(f"There is no assistant {assistant_id!r} in this workspace.")
