"""Profiles: every knob of a run. A mode is the name of a profile.

A turn copies its profile into the state. So a saved run records its settings, and a fork may change any of them.
"""

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from domain.errors import FilterError
from domain.execution.budget import Budget
from domain.library.where import MAX_WRITTEN, Where
from domain.model_names import ModelName
from domain.scope import Scope
from domain.state import REMEMBERED_TURNS
from domain.text.complexity import is_complex
from domain.text.languages import Language

CitationStyle = Literal["number", "source", "citation", "chunk"]
"""`[1]`, `[Source 1]`, `[Citation 1]` or `[cite:CHUNK_ID]`."""

Speech = Language | Literal["auto"]
"""The language in which a run speaks; `auto`: that of the question."""

SourceLabel = Literal["tag", "path"]
"""The label of a source in the model's prompt: the attributes of its tag, or also a line `[Source 1: path]`."""

Length = Literal["brief", "detailed"]

MOST_SOURCES = 50
"""Upper limit of the sources of an answer."""

MOST_DOCUMENTS = 500
"""Upper limit of the documents that a question or a mode may name."""

MOST_INSTRUCTIONS = 2000
"""Upper limit of a team's instructions, in characters."""


class _Knobs(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DocumentKnobs(_Knobs):
    """The documents that a mode answers from. What a question asks for besides narrows them further."""

    ids: list[str] | None = Field(None, max_length=MOST_DOCUMENTS)
    """None: all."""
    where: str | None = Field(None, max_length=MAX_WRITTEN)
    """Those whose metadata passes this filter, in the form of the command line; None: all."""

    @field_validator("where")
    @classmethod
    def _check_where(cls, where: str | None) -> str | None:
        try:
            return str(Where.parse_option(where)) or None
        except FilterError as error:
            raise ValueError(error.message) from None

    def narrow(self, scope: Scope) -> Scope:
        """Return the part of the scope that lies in these documents.

        Raises `FilterError` where both filters test a key in the same way, with different values.
        """
        if self.ids is not None:
            scope = scope.narrow(self.ids)
        if self.where is None:
            return scope
        return replace(scope, where=Where.of([*scope.where.conditions, *Where.parse(self.where).conditions]))


class OfAssistant(_Knobs):
    """The team's assistant that a profile is a version of."""

    id: str
    mode: str
    """What it was made of."""


class RetrievalKnobs(_Knobs):
    """Settings of retrieve's searches and their fusion."""

    candidates: int = Field(40, ge=1, le=200)
    """Fused candidates that go on to rerank."""
    leg_limit: int = Field(50, ge=1, le=1000)
    """Rows that each search brings to the fusion; 100 rank no better (docs/decisions/06-retrieval-and-fusion.md)."""
    fusion: Literal["standardised", "rrf", "weighted", "dense"] = "standardised"
    lexical_weight: float = Field(0.7, ge=0, le=5)
    """`standardised`: z(dense) + lexical_weight * z(lexical). 0.7 is the best of the values measured on the public
    sets (docs/decisions/06-retrieval-and-fusion.md)."""
    dense_weight: float = Field(0.7, ge=0, le=1)
    """`weighted`: dense_weight * dense + (1 - dense_weight) * lexical, each divided by its maximum."""
    rrf_k: int = Field(60, ge=1)
    """Cormack, Clarke & Buettcher, SIGIR 2009."""
    similarity_threshold: float | None = Field(None, ge=0, le=1)
    """Drop candidates whose cosine similarity is known and below this."""
    threshold_embedder: str | None = Field(None, max_length=200)
    """The embedding model that the profile's limits of similarity were chosen for. Where the service searches with
    another one, they are mapped to its scale at start (`domain.library.similarity`). None: they fit the one in use."""
    correct_spelling: bool = True
    """Search for the nearest known word in place of one that neither the documents nor common English hold, and for
    the commonest ending of an unfinished last word."""
    queries: int = Field(4, ge=0, le=8)
    """The most queries that a language model adds at once: for the things that a question names, and in a retry for
    what is missing. Each brings sources of its own (`rerank.keep_further`)."""


class RerankKnobs(_Knobs):
    """Settings of rerank: its method, and the number of candidates that it keeps."""

    method: str = "local"
    """`local`: late interaction over stored vectors. `cross_encoder`: the model that `ASKGRAPH_CROSS_ENCODER` names.
    `cohere`: Cohere's rerank API, or a server that speaks it, by `ASKGRAPH_RERANK_MODEL`.
    `model`: the small language model reads all candidates at once. `none`: the order of the search."""
    only_complex: bool = False
    """Score only for questions that `domain/text/complexity.py` calls complex; others keep the order of the search."""
    keep: int = Field(5, ge=1, le=MOST_SOURCES)
    """Candidates that become sources."""
    keep_broad: int = Field(10, ge=1, le=MOST_SOURCES)
    """The same, where more, for a question of which a language model says that it compares, lists or summarises."""
    keep_further: int = Field(3, ge=1, le=MOST_SOURCES)
    """Candidates of each further query that become sources besides."""

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str, info: ValidationInfo) -> str:
        """Check the name where the validation's context says which rerankers there are."""
        known = (info.context or {}).get("rerankers")
        if known is not None and method not in known:
            raise ValueError(f"there is no reranker {method!r}; there are {', '.join(sorted(known))}")
        return method

    def applies_to(self, question: str) -> bool:
        """Return True where this question's candidates are reranked."""
        return self.method != "none" and (not self.only_complex or is_complex(question))


class ResearchKnobs(_Knobs):
    """Settings of the research agent."""

    rounds: int = Field(0, ge=0, le=20)
    """Times that its model is asked which tools to use, where the model that writes calls for them; 0: there is no
    agent."""
    calls: int = Field(6, ge=1, le=16)
    """Calls of tools that it may make at once."""
    tokens: int = Field(2000, ge=64)
    """Tokens that its model may write each time."""


def _check_function(name: str) -> str:
    if re.fullmatch(r"[^\s.]{1,64}\.\S{1,128}", name) is None:
        raise ValueError(f"{name!r} is not SERVER.FUNCTION, with at most 64 and 128 characters and no blanks")
    return name


FunctionName = Annotated[str, AfterValidator(_check_function)]
"""SERVER.FUNCTION: all that MCP allows, dots included."""


class FunctionKnobs(_Knobs):
    """The functions of MCP servers that the research agent may call."""

    names: list[FunctionName] = Field(default_factory=list, max_length=32)
    """Each a function that the file in `ASKGRAPH_MCP_SERVERS` allows. Empty: nothing from outside is called."""
    calls: int = Field(8, ge=1, le=100)
    """Calls in a turn."""
    seconds: float = Field(10, gt=0, le=12)
    """Seconds that a call may take. A step's own work has 15, and a program up to three of these to end."""
    characters: int = Field(8000, ge=100, le=100_000)
    """Characters of a result that are read."""


class GradeKnobs(_Knobs):
    """The confidence that an answer needs."""

    sufficient: float = Field(0.6, ge=0, le=1)
    """Answer at once at this confidence or more."""
    caveat: float = Field(0.4, ge=0, le=1)
    """When no retry is left, answer with a caveat at this confidence or more; below it, abstain."""
    max_retries: int = Field(2, ge=0, le=5)
    formula: Literal["judged", "weighted"] = "judged"
    """`judged`: a language model that writes says itself what the sources lack; without one, the local calibrated
    judgement. `weighted`: the scores by which the sources were chosen, their relevance or without rerank their
    similarity, each by the inverse of its rank: sum(score_i / i) / sum(1 / i)."""


SHORT_ANSWER, LONG_ANSWER = 80, 200
"""The most words that an answer without a language model quotes: where one thing is asked for, and where several are or
`GenerateKnobs.length` is `detailed`. `askgraph eval` calls longer answers not useful."""


class GenerateKnobs(_Knobs):
    """Settings of generate."""

    citation_style: CitationStyle = "number"
    source_label: SourceLabel = "tag"
    system_instructions: str | None = Field(None, min_length=1, max_length=MOST_INSTRUCTIONS)
    """Instructions of the team for the writing model, which come after ours and cannot lift them."""
    tone: str = Field("plain", min_length=1, max_length=60, pattern=r"^[^\n{}]+$")
    """Adjectives for the writing model: `plain`, `friendly and informal`."""
    length: Length = "brief"
    """How long answers are; without a language model at most `SHORT_ANSWER` or `LONG_ANSWER` words."""
    source_tokens: int = Field(8000, ge=200)
    """Token budget for the sources in the prompt."""
    answer_tokens: int = Field(1000, ge=16, le=128_000)
    answer_seconds: float = Field(300, gt=0, le=600)
    """Seconds after which an answer ends as far as it is written."""
    max_sentences: int = Field(2, ge=1, le=20)
    """The most passages that an answer without a language model quotes."""
    temperature: float = Field(0.2, ge=0, le=2)
    model: Literal["small", "large"] = "large"
    """The language model that writes."""
    remembered_turns: int = Field(4, ge=0, le=REMEMBERED_TURNS)
    """Earlier turns of the conversation that the model sees."""
    pictures: int = Field(0, ge=0, le=8)
    """Pictures of cited PDF pages with figures, scans or forms, at most, that the writing model sees, and the judge.
    Each takes 1,000 to 2,500 tokens; models that see none are asked without."""
    fallback: str | None = Field(None, min_length=1, max_length=500)
    """The whole text of an abstention, and what the model replies where the sources do not answer. None: the sentence
    of the profile's language, followed by what was searched."""


class ModelKnobs(_Knobs):
    """The language models that a run asks. None: the deployment's."""

    small: ModelName | None = None
    """Routes, and makes small talk. A name as `ASKGRAPH_MODEL_SMALL` takes it."""
    large: ModelName | None = None
    """Writes answers."""
    judge: ModelName | None = None
    """Verifies them."""
    timeout: float | None = Field(None, gt=0)
    """Seconds that a step waits for a judgement, or for the next words of an answer. `ASKGRAPH_MODEL_TIMEOUT` is the
    maximum."""


_FORMER = {
    "retrieval": ("expansion", "expansion_queries", "expand_abbreviations"),
    "rerank": ("mmr_lambda",),
    "grade": ("complete",),
    "research": ("tasks",),
}
"""Knobs of 1.0.0 that are no more, by their group."""


class Profile(_Knobs):
    """Every knob of a run."""

    name: str
    assistant: OfAssistant | None = None
    language: Speech = "auto"
    """The language of small talk, abstentions and caveats. `auto`: the question's; where that cannot be told, that of
    the documents' titles; else English. It does not change how documents or questions are understood."""
    documents: DocumentKnobs = DocumentKnobs()
    retrieval: RetrievalKnobs = RetrievalKnobs()
    rerank: RerankKnobs = RerankKnobs()
    research: ResearchKnobs = ResearchKnobs()
    functions: FunctionKnobs = FunctionKnobs()
    grade: GradeKnobs = GradeKnobs()
    generate: GenerateKnobs = GenerateKnobs()
    models: ModelKnobs = ModelKnobs()
    budget: Budget = Budget()
    prompts: dict[str, Annotated[str, Field(min_length=1, max_length=20_000)]] = {}
    """System prompts that a step's model gets in the place of the step's own, by step: to try another wording."""
    verify: bool = False
    """Check every claim of the answer against the sources it cites, and repair or withdraw those without support."""

    @model_validator(mode="before")
    @classmethod
    def _drop_former(cls, given: Any, info: ValidationInfo) -> Any:
        """Drop the knobs of 1.0.0 that are no more, which saved states have. A deployment that sets one that had an
        effect on answers is told."""
        if not isinstance(given, dict):
            return given
        kept = {name: value for name, value in given.items() if name != "speculate"}
        for group, former in _FORMER.items():
            knobs = kept.get(group)
            if isinstance(knobs, dict):
                kept[group] = {name: value for name, value in knobs.items() if name not in former}
                if info.context is not None and len(kept[group]) < len(knobs):
                    gone = ", ".join(f"{group}.{name}" for name in former if name in knobs)
                    raise ValueError(f"1.1.0 has no {gone} any more: take it out")
        return kept


_COMPUTES = ResearchKnobs(rounds=3)
"""Three rounds: columns and values of a table are looked at, computed with, and a wrong query is mended."""

MODES: dict[str, Profile] = {
    "fast": Profile(
        name="fast",
        rerank=RerankKnobs(method="none"),
        grade=GradeKnobs(max_retries=0),
        budget=Budget(seconds=60, tokens=50_000, dollars=0.05),
    ),
    "standard": Profile(name="standard", research=_COMPUTES, budget=Budget(seconds=120, tokens=100_000, dollars=0.05)),
    "thorough": Profile(
        name="thorough",
        rerank=RerankKnobs(keep=8),
        research=_COMPUTES,
        verify=True,
        budget=Budget(seconds=300, tokens=200_000, dollars=0.25),
    ),
    "research": Profile(
        name="research",
        rerank=RerankKnobs(keep=8),
        research=ResearchKnobs(rounds=8),
        generate=GenerateKnobs(source_tokens=24_000),
        verify=True,
        budget=Budget(seconds=600, tokens=500_000, dollars=1.0),
    ),
}
"""The modes that ship. A deployment adds its own through the `profiles` setting."""
