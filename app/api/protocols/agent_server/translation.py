"""Translates the events of one run into the protocol's stream modes.

The real server streams what its engine does. We know it from the run's events: a step ends where the next one begins,
and what it has changed is what it has said. So every process of the deployment can stream a run, and again from its
beginning.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from app.answering.records import note_use
from app.api.protocols.agent_server.messages import (
    Message,
    list_work_messages,
    make_ai,
    make_call_chunk,
    make_chunk,
    pick_fields,
)
from app.api.protocols.agent_server.protocol import name_graph
from app.api.protocols.translating import translate_text
from domain.events import RESTART, Done, Event, ToolCalled, ToolReturned
from domain.runs import ToolUse

StreamMode = Literal[
    "values", "updates", "messages", "messages-tuple", "custom", "debug", "tasks", "checkpoints", "events", "tools"
]  # fmt: skip
"""`tools`, which LangGraph's hooks for pages ask for, stays empty: `messages` and `custom` tell of tools."""

_ATTEMPT = {"created_by": "system", "run_attempt": 1}


class Part(NamedTuple):
    """One event of the protocol."""

    name: str
    data: Any


class Translation:
    """One run in the stream modes that a client wants."""

    def __init__(
        self,
        run_id: str,
        thread_id: str,
        profile: Mapping[str, Any],
        modes: Collection[StreamMode],
        before: Sequence[Message],
        question: Message,
    ) -> None:
        """`before` are the thread's messages before the run. Set it anew where they change before it begins."""
        self._run_id = run_id
        self._modes = set(modes)
        if "messages-tuple" in self._modes:
            # Both would tell the same text twice, and the real server leaves this one out as well.
            self._modes.discard("messages")
        self._thread_id = thread_id
        self._about = {"run_id": run_id, **name_graph(profile)}
        self.before = before
        self._question = question
        self._fields: dict[str, Any] = {"question": question["content"], "mode": profile["name"]}
        self._changed: dict[str, Any] = {}
        self._done: Done | None = None
        self._uses: list[ToolUse] = []
        self._sent, self._offset = "", 0
        self._named = set[str]()
        self._step, self._number = "", 0
        self._input: dict[str, Any] = {}
        """The state with which the step began."""
        self._writes = False

    @property
    def values(self) -> dict[str, Any]:
        """The state as far as it is known."""
        answer = [] if self._done is None else [make_ai(self._done["answer"], self._run_id, self._done)]
        work = list_work_messages(self._run_id, self._uses)
        return {"messages": [*self.before, self._question, *work, *answer], **self._fields}

    def begin(self) -> Iterator[Part]:
        """Yield what comes before the run's first event."""
        yield Part("metadata", {"run_id": self._run_id, "attempt": 1})
        yield from self._trace("on_chain_start", input=self.values)
        yield from self._checkpoint("input", "__start__", {"messages": self.before})
        if "values" in self._modes:
            yield Part("values", self.values)

    def translate(self, event: Event) -> Iterator[Part]:
        """Yield what an event of the run becomes."""
        kind = event["type"]
        if event["type"] == "thinking":
            yield from self._enter(event["step"])
        elif not self._step and kind != "error":
            # No step is taken for an answer from the cache, nor for a run that is stopped before it begins.
            yield from self._enter("stop" if event["type"] == "done" and event["stopped"] else "cache")
        if kind not in ("done", "error", "comparison") and "custom" in self._modes:
            yield Part("custom", event)
        yield from self._write(event)
        match event["type"]:
            case "sources":
                self._change(citations=event["citations"])
            case "tool_call" | "tool_result":
                yield from self._work(event)
            case "correction" if event["reason"] == RESTART:
                self._uses = []
            case "verification":
                self._change(verification={"status": event["status"], "claims": event["claims"]})
            case "done":
                yield from self._finish(event)
            case "error":
                yield Part("error", {"error": event["code"], "message": event["message"]})

    def _enter(self, step: str) -> Iterator[Part]:
        if self._step:
            yield from self._leave(step)
        else:
            yield from self._checkpoint("loop", step, self.values)
        self._step, self._number, self._changed, self._input = step, self._number + 1, {}, self.values
        yield from self._trace("on_chain_start", 1, input=self._input)
        yield from self._task(
            "task",
            {
                "input": self._input,
                "triggers": [f"branch:to:{step}"],
                "metadata": {**self._about, **_ATTEMPT},
            },
        )

    def _leave(self, following: str) -> Iterator[Part]:
        """Yield what the end of a step becomes; `following` is the step that comes next, empty after the last one."""
        if self._writes:
            given, written = {"messages": [self._input["messages"]]}, make_ai(self._sent, self._run_id)
            yield from self._trace("on_chat_model_end", 2, output=written, input=given)
            self._writes = False
        yield from self._trace("on_chain_stream", 1, chunk=self._changed or None)
        yield from self._trace("on_chain_end", 1, output=self._changed or None, input=self._input)
        if "updates" in self._modes:
            yield Part("updates", {self._step: self._changed or None})
        yield from self._task("task_result", {"error": None, "result": self._changed, "interrupts": []})
        if self._changed and "values" in self._modes:
            yield Part("values", self.values)
        yield from self._checkpoint("loop", following, self.values)

    def _finish(self, done: Done) -> Iterator[Part]:
        self._done = done
        self._change(**pick_fields(done))
        self._changed["messages"] = [make_ai(done["answer"], self._run_id, done)]
        yield from self._leave("")
        yield from self._trace("on_chain_end", output=self.values)

    def _write(self, event: Event) -> Iterator[Part]:
        """Yield the text that an event adds. In `messages` a correction replaces what was there, in `messages-tuple`,
        whose pieces clients put together, it follows."""
        piece, self._offset = translate_text(event, self._sent, self._offset)
        self._sent += piece
        if not piece:
            return
        if not self._writes:
            yield from self._trace("on_chat_model_start", 2, input={"messages": [self._input["messages"]]})
            self._writes = True
        yield from self._trace("on_chat_model_stream", 2, chunk=make_chunk(piece, self._run_id))
        text = event["answer"] if event["type"] in ("correction", "done") else self._sent[self._offset :]
        yield from self._say("partial", make_ai(text, self._run_id), make_chunk(piece, self._run_id))

    def _work(self, event: ToolCalled | ToolReturned) -> Iterator[Part]:
        """Yield a call of a tool as a piece of a message, or what it came to as a message."""
        note_use(self._uses, event)
        last_round = [use for use in self._uses if use["round"] == self._uses[-1]["round"]]
        asked, *results = self._changed["messages"] = list_work_messages(self._run_id, last_round)
        if event["type"] == "tool_call":
            yield from self._say("partial", asked, make_call_chunk(asked))
        else:
            for result in results:
                if result["tool_call_id"] == event["call_id"]:
                    yield from self._say("complete", result, result)

    def _say(self, kind: str, message: Message, piece: Message) -> Iterator[Part]:
        """Yield a message in `messages`, and a piece of it in `messages-tuple`."""
        if "messages" in self._modes:
            if message["id"] not in self._named:
                yield Part("messages/metadata", {message["id"]: {"metadata": self._describe_step()}})
                self._named.add(message["id"])
            yield Part(f"messages/{kind}", [message])
        if "messages-tuple" in self._modes:
            yield Part("messages", [piece, self._describe_step()])

    def _trace(self, event: str, depth: int = 0, **data: Any) -> Iterator[Part]:
        """Yield an event of LangChain's callbacks: of the run, at depth 1 of the step, at depth 2 of who writes."""
        if "events" not in self._modes:
            return
        ids = [self._run_id, self._name_task(), str(uuid5(NAMESPACE_URL, self._name_task()))]
        metadata = {"run_id": self._run_id, "thread_id": self._thread_id, **self._about, **_ATTEMPT}
        if depth:
            metadata |= self._describe_step()
        told = {
            "event": event,
            "data": data,
            "name": [self._about["graph_id"], self._step, "askgraph"][depth],
            "tags": [[], [f"graph:step:{self._number}"], ["seq:step:1"]][depth],
            "run_id": ids[depth],
            "metadata": metadata,
            "parent_ids": ids[:depth],
        }
        yield Part("events", told)

    def _change(self, **fields: Any) -> None:
        self._changed |= {name: value for name, value in fields.items() if self._fields.get(name, ...) != value}
        self._fields |= fields

    def _describe_step(self) -> dict[str, Any]:
        namespace = f"{self._step}:{self._name_task()}"
        return {
            **self._about,
            **_ATTEMPT,
            "thread_id": self._thread_id,
            "langgraph_step": self._number,
            "langgraph_node": self._step,
            "langgraph_triggers": [f"branch:to:{self._step}"],
            "langgraph_path": ["__pregel_pull", self._step],
            "langgraph_checkpoint_ns": namespace,
            "checkpoint_ns": namespace,
        }

    def _name_task(self, ahead: int = 0) -> str:
        """Return the id of the current step's task, or of the one so many steps ahead."""
        return str(uuid5(NAMESPACE_URL, f"{self._run_id}/{self._number + ahead}"))

    def _task(self, kind: str, payload: Mapping[str, Any]) -> Iterator[Part]:
        task = {"id": self._name_task(), "name": self._step, **payload}
        if "tasks" in self._modes:
            yield Part("tasks", task)
        yield from self._debug(kind, self._number, task)

    def _checkpoint(self, source: str, following: str, values: Mapping[str, Any]) -> Iterator[Part]:
        """Yield a checkpoint. Ids of checkpoints are not known while the run goes on."""
        number = -1 if source == "input" else self._number
        place = {"thread_id": self._thread_id, "checkpoint_ns": ""}
        ahead = 0 if source == "input" else 1
        tasks: list[dict[str, Any]] = [
            {"id": self._name_task(ahead), "name": following, "interrupts": [], "state": None}
        ]
        checkpoint = {
            "config": {"configurable": {**place, **self._about}},
            "parent_config": None,
            "values": values,
            "metadata": {"source": source, "step": number, "parents": {}},
            "next": [following] if following else [],
            "tasks": tasks if following else [],
        }
        if "checkpoints" in self._modes:
            yield Part("checkpoints", checkpoint)
        yield from self._debug("checkpoint", number, {**checkpoint, "checkpoint": place, "parent_checkpoint": None})

    def _debug(self, kind: str, number: int, payload: Mapping[str, Any]) -> Iterator[Part]:
        if "debug" in self._modes:
            now = datetime.now(UTC).isoformat()
            yield Part("debug", {"step": number, "timestamp": now, "type": kind, "payload": payload})
