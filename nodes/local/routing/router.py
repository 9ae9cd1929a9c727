"""Routes a question, without a language model.

Courtesies are recognised by their words, everything else by the nearest of example utterances (prototypes.py). Turning
a question away wrongly costs far more than a search in vain, so the two other routes must win clearly.
"""

import re
from dataclasses import dataclass

from domain.ports.embedding import Embedder, Vector
from domain.ports.judgement import Routed
from domain.state import Route
from nodes.local.routing.prototypes import ABOUT_ASSISTANT, COMMAND, GOODBYE, MOMENT, PROTOTYPES, TRANSACTION

_LONGEST_TALK = 24
"""Limit, in words, of small talk and commands; anything longer is searched."""

NEAREST = 0.45
"""Cosine similarity from which an example counts as near (benchmarks/routing.py)."""

LEAD = 0.06
"""Lead that the nearest example must have over the nearest question for the documents (benchmarks/routing.py)."""

_GOES_ON = re.compile(
    r"\b(?:(?:tell|show|give)\s+me\s+more|more\s+(?:about|details?|please)|explain|elaborate|go\s+on|continue|summari[sz]e|"
    r"detail|examples?)\b",
    re.IGNORECASE,
)
"""A request, within a conversation, for more about the last answer."""

_ADDRESS = re.compile(r"\b(?:you|your|you're|you've|yours|yourself|u|ai|bot|assistant)\b", re.IGNORECASE)
"""A word that addresses the assistant. "Who made it?" has none and asks about something else."""

_SPEAKER = re.compile(r"\b(?:i|i'm|me|we|us|our)\b", re.IGNORECASE)
"""A word for the speakers. Within a conversation, such a question may ask for something said in it."""

_RULES = re.compile(r"\b(?:do|should|may|must) (?:i|we)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_ASKS = re.compile(
    r"^\W*(?:how\s+(?:do|does|can|should|could|must|may|to|are|is)\b|(?!.*\bmy\b)(?:how|what|which|who|whom|whose|why|when|"
    r"where|is|are|was|were|do|does|did|am|(?:can|could|may|must|should|shall|will)(?!\s+you))\b)",
    re.IGNORECASE,
)
"""A question for a fact that documents may hold ("How do I block a card?"), and no order ("Block my card")."""

_COURTESY = re.compile(
    r"""(?:
        h(?:i+|ello+|ey+(?:\s+there|o)?|owdy|iya)(?:\s+(?:there|all|everyone|again|friend|buddy))?
      | good\s+(?:morning|afternoon|evening|day|night) | goodnight | greetings | (?:wh?at'?s|wa[sz]+)\s*up | yo | sup
      | (?:many\s+)?thanks?(?:\s+(?:you|u|again|a\s+(?:lot|bunch|million)|so\s+much|very\s+much))*
        (?:\s+for\s+(?:your|the|all\s+your)\s+(?:help|support|time|information|info|answer|explanation|assistance))?
      | thx | ty | cheers | (?:much\s+)?appreciated | (?:i(?:'m|\s+am)\s+)?(?:so\s+|very\s+)?(?:thankful|grateful)
      | (?:good\s*)?bye(?:[\s-]*bye)? | farewell | see\s+(?:you|ya)(?:\s+(?:later|soon|tomorrow))? | cu | ciao
      | nice | great | cool | perfect | awesome | wonderful | excellent | wow | ok(?:ay)? | alright | all\s+right | sure
      | got\s+it | i\s+see | good\s+to\s+know | understood | yes | yeah | yep | no | nope | please | well | so
      | (?:that'?s|that\s+is|it'?s)\s+(?:very\s+|really\s+)?(?:great|good|nice|helpful|fine|interesting|cool|awesome)
    )(?=$|[\s,.!?;:…-])[\s,.!?;:…-]*""",
    re.VERBOSE | re.IGNORECASE,
)

_embedded: dict[str, list[tuple[Route, str, Vector]]] = {}
"""The embedded examples, by the name of the embedder."""


@dataclass(frozen=True, slots=True)
class LocalRouter:
    """Implements `QuestionRouter`."""

    embedder: Embedder

    async def route(self, question: str, *, follow_up: bool) -> Routed:
        rest = strip_courtesies(question)
        if not re.search(r"\w", rest):
            return Routed("conversational", "It is a courtesy.")
        if len(rest.split()) > _LONGEST_TALK:
            return Routed("needs_retrieval", "It is longer than small talk.")
        if follow_up and _GOES_ON.search(rest):
            return Routed("needs_retrieval", "It asks for more on the last answer.")
        impossible = set() if _ADDRESS.search(rest) else {ABOUT_ASSISTANT}
        if _ASKS.search(rest):
            impossible |= {COMMAND, TRANSACTION}
        if rest.endswith("?"):
            impossible.add(GOODBYE)
        if _YEAR.search(rest) or _RULES.search(rest):
            impossible.add(MOMENT)
        nearest = [found for found in await self._find_nearest(rest) if found[1] not in impossible]
        route, kind, score = max(nearest, key=lambda found: found[2])
        documents = max(found[2] for found in nearest if found[0] == "needs_retrieval")
        lead = LEAD * 2 if follow_up else LEAD
        if route == "needs_retrieval" or score < NEAREST or score - documents < lead:
            return Routed("needs_retrieval", "It may be answered by the documents.")
        return Routed(route, f"It is {kind}.")

    async def is_for_documents(self, question: str, *, follow_up: bool) -> bool:
        rest = strip_courtesies(question)
        if not _ASKS.search(rest) or _ADDRESS.search(rest) or (follow_up and _SPEAKER.search(rest)):
            return False
        return (await self.route(question, follow_up=follow_up)).route == "needs_retrieval"

    async def prepare(self) -> None:
        """Embed the examples, once per embedder."""
        if self.embedder.name in _embedded:
            return
        groups = [(route, kind, texts) for route, kinds in PROTOTYPES.items() for kind, texts in kinds.items()]
        vectors = await self.embedder.embed_passages([text for _, _, texts in groups for text in texts])
        found, first = [], 0
        for route, kind, texts in groups:
            found.append((route, kind, vectors[first : first + len(texts)]))
            first += len(texts)
        _embedded[self.embedder.name] = found

    async def _find_nearest(self, text: str) -> list[tuple[Route, str, float]]:
        """Return each kind of example with the similarity of its nearest."""
        await self.prepare()
        vector = await self.embedder.embed_query(text)
        return [
            (route, kind, float((vectors @ vector).max())) for route, kind, vectors in _embedded[self.embedder.name]
        ]


def strip_courtesies(question: str) -> str:
    """Return the question without the greetings, thanks and interjections that it opens with."""
    rest = question.strip()
    while match := _COURTESY.match(rest):
        rest = rest[match.end() :]
    return rest
