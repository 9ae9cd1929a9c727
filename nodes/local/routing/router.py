"""Which way a question goes, without a language model.

Courtesies are recognised by their words, the rest by its nearest prototype among utterances of three kinds. A
question that is wrongly turned away costs far more than a search in vain, so both other routes must win clearly.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.ports.embedding import Embedder, Vector
from domain.ports.judgement import Routed
from domain.state import Route

_LONGEST_TALK = 24
"""Words. Small talk and commands are short; what is longer is always searched."""

NEAREST = 0.45
"""Cosine similarity from which a prototype counts as near (benchmarks/routing.py)."""

LEAD = 0.06
"""By how much the nearest prototype must beat the nearest document question (benchmarks/routing.py)."""

_GOES_ON = re.compile(
    r"\b(?:(?:tell|show|give)\s+me\s+more|more\s+(?:about|details?|please)|explain|elaborate|go\s+on|continue|summari[sz]e|"
    r"detail|examples?)\b",
    re.IGNORECASE,
)
"""Within a conversation, asks for more of what the last answer was about."""

_ABOUT_ASSISTANT = "a question about the assistant"
_ADDRESS = re.compile(r"\b(?:you|your|you're|you've|yours|yourself|u|ai|bot|assistant)\b", re.IGNORECASE)
"""Without one of these, "Who made it?" asks about something else."""

_SPEAKER = re.compile(r"\b(?:i|i'm|me|we|us|our)\b", re.IGNORECASE)
"""Within a conversation, may ask for what was said in it."""

_COMMAND = "a command to a device"
_TRANSACTION = "a personal transaction"
_GOODBYE = "a goodbye"
_MOMENT = "something of this very moment"
_RULES = re.compile(r"\b(?:do|should|may|must) (?:i|we)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_ASKS = re.compile(
    r"^\W*(?:how\s+(?:do|does|can|should|could|must|may|to|are|is)\b|(?!.*\bmy\b)(?:how|what|which|who|whom|whose|why|when|"
    r"where|is|are|was|were|do|does|did|am|(?:can|could|may|must|should|shall|will)(?!\s+you))\b)",
    re.IGNORECASE,
)
"""Asks for a fact that documents may hold ("How do I block a card?"), so it is no order ("Block my card")."""

_PROTOTYPES: dict[Route, dict[str, Sequence[str]]] = {
    "conversational": {
        "a greeting": (
            "hello",
            "hi there, good to meet you",
            "good afternoon to you",
            "how are you doing today?",
            "how is everything going with you?",
            "what's new with you, buddy?",
            "what is happening, mate?",
        ),
        "thanks or praise": (
            "thank you so much",
            "I am grateful for your help",
            "great job, that was really helpful",
            "I appreciate what you did",
            "you are wonderful",
            "many special thanks",
            "I am in your debt",
            "thanks for the assistance",
        ),
        _GOODBYE: (
            "bye for now",
            "see you tomorrow",
            "have a nice evening",
            "talk to you later, take care",
            "it was nice chatting with you",
            "until we meet again",
        ),
        _ABOUT_ASSISTANT: (
            "who are you?",
            "what are you called?",
            "do you have a name?",
            "what can you do for me?",
            "what sort of questions may I ask you?",
            "which topics do you know about?",
            "how can you help me?",
            "who built you?",
            "which company developed you?",
            "who do you report to?",
            "who is your employer?",
            "are you a person or a machine?",
            "am I talking to a real human?",
            "are you an AI?",
            "how old are you?",
            "when is your birthday?",
            "where do you come from?",
            "where do you live?",
            "do you have a dog or a cat?",
            "do you keep any pets?",
            "what do you enjoy doing?",
            "what is your favourite hobby?",
            "do you have feelings?",
            "what is your opinion about life?",
            "which language model are you based on?",
            "what are you good at answering?",
            "what do people call you?",
            "who designed and programmed you?",
            "where were you built?",
            "for how many years have you existed?",
            "are you real?",
            "what interests you?",
        ),
        "a question about life": (
            "what is the meaning of life?",
            "why do we exist?",
            "what is the purpose of human existence?",
        ),
        "a request for entertainment": (
            "tell me a joke",
            "do you know something funny?",
            "make me laugh",
            "say something amusing",
            "tell me a fun fact",
            "give me some trivia about animals",
            "share an interesting fun fact with me",
            "sing me a song",
            "I am bored, entertain me",
        ),
        "a remark": (
            "yes, that is correct",
            "no, that is wrong",
            "maybe",
            "I am not sure",
            "I don't know",
            "never mind, forget it",
            "stop, cancel that",
            "please repeat what you said",
            "could you say that again?",
            "okay, I understand",
            "you are useless",
            "that is true",
            "that statement is false",
            "I would rather not",
            "quit what you are doing right now",
            "what did you just say?",
            "I like talking to you",
            "affirmative",
            "negative",
            "that is not it",
            "I will pass",
            "abort that please",
        ),
        "a wish for how the assistant behaves": (
            "speak more slowly",
            "talk faster please",
            "turn your volume down",
            "use a different voice",
            "change your accent",
            "switch your language to German",
            "go into whisper mode",
            "connect to my phone",
            "restore your default settings",
            "I will call you Max from now on",
            "call me Anna",
            "please start calling me Tom",
            "do you remember my name?",
            "my name is Peter",
            "change my name to Lisa",
            "I would like to rename you",
            "I want another language",
        ),
    },
    "out_of_scope": {
        _COMMAND: (
            "set an alarm for seven in the morning",
            "start a timer for ten minutes",
            "play some jazz music",
            "skip to the next song",
            "turn off the lights in the kitchen",
            "call my mother",
            "send a text message to John",
            "remind me to buy flowers tomorrow",
            "add milk to my shopping list",
            "put the dentist appointment in my calendar",
            "find my phone",
            "take me home, start the navigation",
            "open the garage door",
            "roll a dice",
            "flip a coin",
        ),
        _TRANSACTION: (
            "transfer fifty dollars to my savings account",
            "pay my electricity bill",
            "what is the balance of my checking account?",
            "book a flight to Rome for Friday",
            "reserve a table for two tonight",
            "order a large pizza",
            "get me a taxi to the airport",
            "block my credit card, it was stolen",
            "submit a holiday request for next week",
            "buy ten shares of this company for me",
        ),
        _MOMENT: (
            "what is the weather like today?",
            "will it rain tomorrow?",
            "what time is it now?",
            "what is the date today?",
            "where am I right now?",
            "how is the traffic on my way to work?",
            "who won the match last night?",
            "what is the stock price right now?",
            "what is on my calendar today?",
            "is my flight on time?",
        ),
        "a task without documents": (
            "how much is 12 times 9?",
            "translate good morning into French",
            "write a poem about spring",
            "how do you spell necessary?",
            "convert five miles to kilometres",
        ),
    },
    "needs_retrieval": {
        "a question for the documents": (
            "what is the refund period?",
            "how do I reset the device?",
            "how long is the warranty?",
            "what does the contract say about termination?",
            "can you summarise the travel policy?",
            "how many days of leave do employees get?",
            "who is the chief executive of the company?",
            "when was the treaty signed?",
            "what was the revenue in 2022?",
            "why did the experiment fail?",
            "which city is the capital of the province?",
            "how does the protein regulate the cell cycle?",
            "what are the side effects of the drug?",
            "explain the difference between the two methods",
            "tell me more about the history of the building",
            "is it allowed to bring a dog into the office?",
            "where can I find the form for expenses?",
            "how do I configure the server?",
            "what fees are charged for an international transfer?",
            "who wrote the book and where was the author born?",
            "what happens if a payment is late?",
            "how does the temperature affect the wing at supersonic speed?",
            "does the vaccine reduce mortality?",
            "compare the results of both studies",
            "what about the second one?",
            "how many people live there?",
            "what is its population?",
            "I heard that the system has a limit on users",
            "the treatment lowers the risk of infection in children",
            "what should I do when my luggage is lost?",
            "do you know when the office opens?",
            "do you have information about pricing?",
            "what is a neural network?",
            "who were the members of the band?",
            "list the requirements for the application",
            "what kind of animals live in the forest?",
            "how old was the king when he died?",
            "what language is spoken in the region?",
            "what is the name of the main character?",
            "how does the software set a timer?",
            "which countries joined the union?",
            "what music did the composer write?",
        ),
    },
}

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
"""By the embedder's name."""


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
        impossible = set() if _ADDRESS.search(rest) else {_ABOUT_ASSISTANT}
        if _ASKS.search(rest):
            impossible |= {_COMMAND, _TRANSACTION}
        if rest.endswith("?"):
            impossible.add(_GOODBYE)
        if _YEAR.search(rest) or _RULES.search(rest):
            impossible.add(_MOMENT)
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
        """Embed the prototypes, once per embedder, so that the first question need not wait for it.

        Raises `EmbedderUnavailable`.
        """
        if self.embedder.name in _embedded:
            return
        groups = [(route, kind, texts) for route, kinds in _PROTOTYPES.items() for kind, texts in kinds.items()]
        vectors = await self.embedder.embed_passages([text for _, _, texts in groups for text in texts])
        found, first = [], 0
        for route, kind, texts in groups:
            found.append((route, kind, vectors[first : first + len(texts)]))
            first += len(texts)
        _embedded[self.embedder.name] = found

    async def _find_nearest(self, text: str) -> list[tuple[Route, str, float]]:
        """Each kind of prototype with the similarity of its nearest."""
        await self.prepare()
        vector = await self.embedder.embed_query(text)
        return [
            (route, kind, float((vectors @ vector).max())) for route, kind, vectors in _embedded[self.embedder.name]
        ]


def strip_courtesies(question: str) -> str:
    """The question without the greetings, thanks and interjections that it opens with."""
    rest = question.strip()
    while match := _COURTESY.match(rest):
        rest = rest[match.end() :]
    return rest
