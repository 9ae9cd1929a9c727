"""Replies that need neither documents nor a model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NAMED = 3
"""Number of titles that a reply names; a list of all would be noise."""

_REPLIES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), answer)
    for pattern, answer in (
        (
            r"\b(jokes?|funny|funniest|laugh|hilarious|amus\w+|entertain|bored|sing|trivia|fun facts?)\b",
            "I am better with documents than with entertainment, I'm afraid. {offer}",
        ),
        (
            r"\b(thanks?|thankful|thx|cheers|grateful|gratitude|appreciated?|great job|well done|big help|owe you)\b",
            "You're welcome. {offer}",
        ),
        (r"\b(bye|goodbye|good ?night|farewell|see (you|ya)|later|take care|until next|have a (good|nice|great))\b",
         "Goodbye, and come back whenever you have a question."),
        (
            r"\bhow('s| is| are| r)? (are |is )?(you|u|it|everything|things)\b(?! (old|made|built|work))|"
            r"\bhow you are\b|what'?s (up|new)|wassup",
            "I'm well, thank you. {offer}",
        ),
        (
            r"\bwhat (can|could|do) you do\b|"
            r"\b(can|could|may|do|are|what|which) .*\b(ask|answer|help|do for|able|capable|topics?|know about|"
            r"familiar)\b",
            "I answer questions from your documents and show where each answer stands. {offer}",
        ),
        (
            r"\b(volume|voice|accent|whisper|speak|talk|language|settings?|pair|sync|connect|call (me|you)|my name|"
            r"your name to)\b",
            "I can't change how I work from here, but I can answer questions about your documents. {offer}",
        ),
        (
            r"\b(you|your|yourself|bot|ai|robot|human)\b",
            "I'm an assistant, a computer program, and I answer questions from your documents. {offer}",
        ),
        (r"\b(meaning|purpose|point) of (life|existence)\b|\bwhy (are we|do we exist)\b",
         "People have written whole libraries on that one. I keep to the documents I have. {offer}"),
        (r"^\W*(no|nope|wrong|stop|cancel|never ?mind|forget)\b", "All right. {offer}"),
        (r"^\W*(yes|yeah|yep|ok|okay|sure|great|nice|good|cool|perfect|maybe)\b", "Good. {offer}"),
        (r"\b(hi+|hello+|hey+|good (morning|afternoon|evening|day)|greetings|howdy|yo)\b", "Hello! {offer}"),
    )
)  # fmt: skip


_ACTION = re.compile(
    r"\W*(?:please|can you|could you)?\W*(?:set|start|play|turn|call|send|text|remind|add|book|order|pay|transfer|"
    r"reserve|buy|open|take|skip|roll|flip|put|submit|block|write|translate)\b",
    re.IGNORECASE,
)
"""A request to do something."""


@dataclass(frozen=True, slots=True)
class LocalSmallTalk:
    """Implements `SmallTalk` with fixed replies."""

    async def reply(self, question: str, titles: Sequence[str] | None) -> str:
        for pattern, answer in _REPLIES:
            if pattern.search(question):
                return answer.format(offer=_offer(titles))
        return f"I'm here to answer questions about your documents. {_offer(titles)}"

    async def decline(self, question: str, titles: Sequence[str] | None) -> str:
        action = _ACTION.match(question)
        refusal = "I can't do that" if action else "I can't help with that"
        return f"{refusal}: I only answer questions about the documents I have been given. {_offer(titles)}"


def _offer(titles: Sequence[str] | None) -> str:
    if titles is None:
        return "You can ask me about your documents."
    if not titles:
        return "There are no documents yet; add some and ask me about them."
    named = [f"“{title}”" for title in titles[:_NAMED]]
    if len(titles) > _NAMED:
        listed = ", ".join(named) + " and others"
    else:
        listed = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    return f"You can ask me about {listed}."
