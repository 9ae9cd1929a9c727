"""route: classify the question, and make it understandable on its own.

Cleans the question, makes a follow-up stand alone with the conversation, and classifies it. A false `out_of_scope`
costs the user an answer while a wasted search costs milliseconds, so every doubt ends in `needs_retrieval`. A language
model is asked only about a follow-up, a question that may need several searches, and one that is not sure to be for the
documents (docs/decisions/10-grading.md).
"""

from collections.abc import Sequence
from typing import Literal

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from domain.documents import Passage, name_place
from domain.errors import EmbedderUnavailable, UnknownMode
from domain.outcome import Choice
from domain.ports.judgement import Routed
from domain.ports.models import ChatModel
from domain.profile import MODES, Profile
from domain.scope import Scope
from domain.state import PerQuestion, Task, Turn, TurnInput, blank_question, read_turns
from domain.text.complexity import is_complex
from domain.text.languages import Language, detect_language
from domain.text.question import add_carried, choose_untried, clean_question
from domain.text.tables import is_row
from domain.text.terms import analyse
from nodes.context import Context, profile_of, scope_of
from nodes.prompting.asking import ask_or_none
from nodes.prompting.messages import ask, instruct, show_list, show_turns
from nodes.sources.optional import query_or_default
from nodes.sources.titles import list_recent, read_titles
from nodes.step import Step

PROMPT = """You prepare questions for a search over a team's documents.

Classify the user's last message:
- needs_retrieval: anything that documents might answer. When unsure, choose this.
- conversational: greetings, thanks, small talk, or questions about you, the assistant.
- out_of_scope: a request that no document can fulfil, such as playing music, setting an alarm or moving money.

Also write standalone_question: the message rewritten so that it can be understood without the conversation, with
pronouns and omissions filled in. Keep names, numbers and wording; add nothing that was not said. Leave it empty where
the message stands alone already.

And plan the search, for what needs retrieval:
- task: look_up one thing; compare several; list all of a kind; compute a figure; or summarise.
- queries: the question itself is searched for anyway. Only where it needs several things, one query of a few words for
  each of them, at most {count}: each product that it compares, each part that it asks for, the fact that another one
  depends on. Name in each what it is about, in the language of the titles; where they are in several languages, a query
  in each. Empty where the question asks for one thing.

Titles of documents, those nearest to the message first:
{titles}"""

_TURNS_SHOWN = 6
_TITLES_SHOWN = 20
"""What the model is shown. Chosen: enough to know what is spoken of, and still a short prompt."""
_TITLES_READ = 50
"""Passages whose documents are nearest to the question."""

_PASSAGES_READ = 3
_COVERED = 2 / 3
_FEWEST_TERMS = 2
"""A question is for the documents, whatever it resembles, if one of the best passages holds this share of its terms.
Where a sentence has fewer than so many, the names of the passage's document and section have to hold them: a single
word is in any document. They need not where it would be declined and asks something ("When is the pilot due?").
Chosen: all but one word of three."""


class RouteInput(TurnInput):
    """The part of the state that route reads."""

    turns: list[Turn]


class RouteUpdate(TurnInput, PerQuestion):
    """The whole state. Every per-question field is reset, so that a turn inherits nothing from the one before."""

    turns: list[Turn]


class Routing(BaseModel):
    """The model's judgement. It is kept short, because the answer waits for it."""

    route: Literal["needs_retrieval", "conversational", "out_of_scope"]
    standalone_question: str = Field(max_length=4000)
    """Empty where the question stands alone already."""
    task: Task = "look_up"
    queries: list[str] = Field(default_factory=list, max_length=20)


async def route(state: RouteInput, runtime: Runtime[Context]) -> RouteUpdate:
    """Clean the question, make it stand alone, classify it, and reset the per-question state.

    Raises `QuestionError` and `UnknownMode`.
    """
    context = runtime.context
    question = clean_question(state["question"])
    # LangGraph Studio starts a run with as little as a question; what the last one left then stands in the state.
    mode = state.get("mode") or "standard"
    profile = state.get("profile") or {}
    if profile.get("name") != mode:
        if mode not in MODES:
            raise UnknownMode(f"There is no mode {mode!r}. There are: {', '.join(MODES)}.")
        profile = MODES[mode].model_dump()
    turns = read_turns(state.get("turns"))
    update = RouteUpdate(
        **blank_question(),
        run_id=context.run_id or _find_run_id(runtime) or state.get("run_id") or "",
        question=question,
        scope=Scope.from_json(state.get("scope") or {"workspace_id": "default"}).to_json(),
        mode=mode,
        profile=profile,
        asked_on=state.get("asked_on", ""),
        turns=turns,
    )
    # A fork may have set any knob: a wrong one is refused here, not by the first step that reads it.
    update["language"] = await _choose_language(profile_of(update), question, update, context)
    if turns and (choice := context.judges.rewriter.pick(question, turns[-1].get("choices", []))) is not None:
        return _follow_choice(update, turns[-1], choice)
    if (request := context.judges.router.find_request(question)) is not None:
        update["route"], update["route_reason"] = request.route, request.reason
        update["standalone_question"] = update["query"] = question
        update["subject"] = request.subject
        update["focus"] = find_last_cited(turns) if request.points_back else []
        return update
    unclassified = ""
    try:
        routed = await context.judges.router.route(question, follow_up=bool(turns))
    except EmbedderUnavailable as error:
        unclassified = error.message
        routed = Routed("needs_retrieval", "it could not be classified", sure=False)
    routing: Routing | None = None
    query: str | None = None
    reason = "the language model said so"
    # What functions of servers outside cover, such as the weather, nobody knows here.
    has_functions, may_call = bool(profile_of(update).functions.names), "a function may answer it"
    if (model := context.models.small) is not None and (turns or not routed.sure or is_complex(question)):
        routing = await ask_or_none(
            model,
            _ask_model(model, update, context),
            context.ledger,
            "The question was routed without the language model",
        )
    if routing is None:
        if unclassified:
            context.ledger.warn(f"The question was searched for without being classified: {unclassified}")
        kind, reason, update["subject"] = routed.route, routed.reason, routed.subject
        is_short = len(set(analyse(question))) < _FEWEST_TERMS and len(question.split()) > 1
        by_name = is_short and not (kind == "out_of_scope" and routed.asks)
        is_doubtful = kind == "out_of_scope" or routed.asks
        if is_doubtful and has_functions:
            kind, reason = "needs_retrieval", may_call
        elif is_doubtful and await _is_covered(question, update, context, by_name=by_name):
            kind, reason = "needs_retrieval", "the documents have its words"
        elif update["subject"] and not await _is_covered(update["subject"], update, context, by_name=True):
            # An overview would be of a document that happens to have the word. The search may correct its spelling.
            kind, reason, update["subject"] = "needs_retrieval", "no document or section has this name", ""
        if offer := context.judges.rewriter.accept(question, turns, update["language"]):
            kind, reason, update["subject"] = "needs_retrieval", "it accepts what the last answer offers", ""
        standalone = question
        if kind == "needs_retrieval":
            rewrite = await context.judges.rewriter.rewrite(offer or question, turns)
            standalone, query = rewrite.standalone, rewrite.query
            update["unclear"] = rewrite.unclear
            update["queries"] = [*rewrite.queries[: profile_of(update).retrieval.queries]]
        update["route"], update["standalone_question"] = kind, standalone
    else:
        update["route"], update["standalone_question"] = routing.route, routing.standalone_question.strip()
        if routed.sure and routed.route == "needs_retrieval" != routing.route and not turns:
            # What is not searched has no sources, and a weak model would answer it from what it thinks it knows.
            update["route"], reason = "needs_retrieval", "it asks for what documents may hold"
        elif has_functions and routing.route == "out_of_scope":
            update["route"], reason = "needs_retrieval", may_call

    if routing is not None and update["route"] == "needs_retrieval":
        most = profile_of(update).retrieval.queries
        update["task"], update["queries"] = routing.task, choose_untried(routing.queries, [question])[:most]
    update["route_reason"] = reason
    # Without a conversation there is nothing that a model could fill in.
    update["standalone_question"] = (update["standalone_question"] if turns else "") or question
    update["corrected_question"] = update["standalone_question"]
    update["query"] = query or update["standalone_question"]
    return update


def _follow_choice(update: RouteUpdate, asked: Turn, choice: Choice) -> RouteUpdate:
    """Ask the question that was asked back again, of what was chosen."""
    update["route"], update["route_reason"] = asked["route"], "it picks what was offered"
    update["language"] = detect_language(asked["question"]) or update["language"]
    update["focus"] = [choice["document_id"]]
    update["standalone_question"] = update["corrected_question"] = update["query"] = add_carried(
        asked["question"], [choice["label"]]
    )
    return update


def find_last_cited(turns: Sequence[Turn]) -> list[str]:
    """Return the ids of the documents that the last answer which cites any was taken from."""
    return next((turn["document_ids"] for turn in reversed(turns) if turn.get("document_ids")), [])


async def _is_covered(question: str, state: RouteUpdate, context: Context, *, by_name: bool = False) -> bool:
    """Return True where a passage, with the names of its document and section, holds nearly all words of the question;
    `by_name`, where those names do."""
    terms = set(analyse(question))
    if not terms:
        return False
    texts = (
        f"{name_place(passage.title, passage.heading_path)} {'' if by_name else passage.text}"
        for passage in await _read_nearest(question, _PASSAGES_READ, state, context)
    )
    return any(len(terms & set(analyse(text))) >= _COVERED * len(terms) for text in texts)


async def _read_nearest(question: str, most: int, state: RouteUpdate, context: Context) -> list[Passage]:
    """Return the passages that share most words with the question; none where the library does not answer."""
    scope = scope_of(state)

    async def read() -> list[Passage]:
        matches = await context.library.search_lexical(scope, question, most)
        return await context.library.read_passages(scope, [match.chunk_id for match in matches])

    return await query_or_default(read(), [], context.ledger, "The question's words were not looked for")


async def _choose_language(profile: Profile, question: str, state: RouteUpdate, context: Context) -> Language:
    """Return the profile's language, the question's, that of an earlier one, or that of the passages that share its
    words; English where none is known."""
    if profile.language != "auto":
        return profile.language
    for asked in (question, *(turn["question"] for turn in reversed(state["turns"]))):
        if (language := detect_language(asked)) is not None:
            return language
    nearest = await _read_nearest(question, _PASSAGES_READ, state, context)
    # Rows and their records have no function words, and one that looks like one tells nothing.
    lines = (line for passage in nearest for line in passage.text.split("\n"))
    return detect_language("\n".join(line for line in lines if not is_row(line) and not line.startswith("- "))) or "en"


def _find_run_id(runtime: Runtime[Context]) -> str | None:
    info = runtime.execution_info
    return str(info.run_id) if info is not None and info.run_id else None


async def _ask_model(model: ChatModel, state: RouteUpdate, context: Context) -> Routing:
    nearest = [passage.title for passage in await _read_nearest(state["question"], _TITLES_READ, state, context)]
    recent = read_titles(await list_recent(state, context, _TITLES_SHOWN))
    titles = list(dict.fromkeys([*nearest, *(recent or [])]))[:_TITLES_SHOWN]
    listed = show_list(titles) or ("(not known)" if recent is None else "(none yet)")
    messages = [
        instruct(PROMPT, titles=listed, count=profile_of(state).retrieval.queries),
        *show_turns(state["turns"], _TURNS_SHOWN),
        ask("{question}", question=state["question"]),
    ]
    return await model.judge(messages, Routing, context.ledger)


STEP = Step(
    run=route,
    label="Reading the question",
    knobs=frozenset({"name", "language", "retrieval.queries", "functions.names"}),
    prompts=[PROMPT],
    asks="small",
    retry=True,
)
