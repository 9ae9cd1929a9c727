"""Tells which kind of thing a question asks for, and whether a text holds it."""

import re

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_MONTH = rf"\b(?:{_MONTHS})\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b|\b\d{{4}}-\d\d\b"
_DATE = rf"\b\d{{4}}\b|\b(?:{_MONTHS})\b|\bcentur|\b\d{{1,2}}[:.]\d\d\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b\d+\w* (?:day|week|month|year)s?\b|\b(?:daily|weekly|monthly|yearly|annually)\b"  # noqa: E501
_QUANTITY = (
    r"\b\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|[mb]illion|half|"
    r"third|quarter|once|twice|no limit|unlimited)\b"
)
_FREQUENCY = (
    r"\b(?:every|each|per|once|twice|times|hourly|daily|nightly|weekly|monthly|quarterly|yearly|annual(?:ly)?|interval|"
    r"regularly|continuously|always|never|rarely|often|\d+ (?:minute|hour|day|week|month|year)s?)\b"
)
_REASON = r"\b(?:because|due to|since|therefore|so that|in order|as a result|reason|caused?|led to|to avoid|thus)\b"
_EXPECTATIONS: tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...] = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(given, re.IGNORECASE) if given else None)
    for asked, given in (
        (r"\b(?:what|which) month\b", _MONTH),
        (r"\b(?:what|which) year\b", r"\b\d{4}\b"),
        (r"^\W*(?:since |until )?when\b|\b(?:what|which) (?:date|day|decade|century|time)\b", _DATE),
        (r"\bhow (?:often|frequently)\b", _FREQUENCY),
        (
            r"\bhow (?:many|much|long|old|far|large|big|tall|high|fast|deep|wide|soon|late)\b|"
            r"\bhow (?:heavy|thick|hot|cold)\b|\bwhat (?:(?:is|are|was|were) the )?(?:\w+ )?"
            r"(?:percentage|percent|number|amount|fraction|proportion|price|fee|fare|cost|weight|height|length|speed)\b",
            _QUANTITY,
        ),
        (r"^\W*why\b|\bwhat (?:caused|causes|reason)\b", _REASON),
        (r"^\W*(?:who|whom|whose|where)\b|\b(?:what|which) (?:person|company|city|country|state|place|region)\b", None),
    )
)
"""Kinds of questions with what an answer holds; None stands for a name that the question does not have."""

_KIND = re.compile(
    r"\b(?:what|which) (?:year|date|day|month|decade|century|time|person|company|city|country|state|place|region)\b",
    re.IGNORECASE,
)

_NAME = re.compile(r"(?<=[^.!?:] )[A-Z]\w+")


def meet_expectation(question: str, text: str) -> int:
    """Return 1 where the text holds the kind of thing asked for, -1 where it does not, 0 where any sentence may
    answer."""
    for asked, given in _EXPECTATIONS:
        if asked.search(question):
            if given is not None:
                return 1 if given.search(text) else -1
            known = set(re.findall(r"\w+", question.lower()))
            return 1 if any(name.lower() not in known for name in _NAME.findall(text)) else -1
    return 0


def drop_kind(question: str) -> str:
    """Return the question without the word for a kind of thing, which an answer need not have: "on 4 March" answers "In
    which month?"."""
    return _KIND.sub("", question)
