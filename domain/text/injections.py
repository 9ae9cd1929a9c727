"""Recognises text that gives orders to the language model that reads it.

Such text is no evidence, so no claim is checked against it (`nodes/writing/claims.py`). The patterns are words and
forms that are rare in documents meant for people; docs/operations/attacks.md says how rare.
"""

import re

_REPLIER = r"(?:assistant|a\.?i\.?|chat ?bot|language model|llm|askgraph|gpt)"
_ORDERS = re.compile(
    # At the beginning of a word, which is looked for once and not with each of these.
    r"\b(?:"
    # Revokes the rules, in the languages of known attacks.
    # Not the "ignore rules" of a program, which are a thing and no order, nor "don't forget the rules".
    r"(?:ignore(?!\s+(?:rule|pattern|file|list)s?\b)|disregard|(?<!n't )(?<!n’t )(?<!not )forget|override|bypass)\b"
    r"[^.\n]{0,40}\b(?:instructions?|rules|prompts?|guidelines|sources)\b"
    r"|(?:ignorier\w*|vergiss|missachte)\b[^.\n]{0,40}\b(?:anweisung|regel|vorgabe|befehl)\w*"
    r"|(?:ignore[rz]?|oublie[rz]?)\b[^.\n]{0,40}\b(?:consignes?|instructions?|règles?)\b"
    r"|(?:ignora|olvida)\b[^.\n]{0,40}\b(?:instrucciones|reglas)\b"
    # Dictates the reply.
    r"|(?:repl(?:y|ies)|respond|answer)\b[^.\n]{0,40}\b(?:only with|every question|all questions|any question)\b"
    # Not "Finance will reply with an approval", which tells of somebody.
    r"|(?<!\bwill )(?<!\bwould )(?:reply|respond|answer) with\b|you (?:will|would) (?:reply|respond|answer) with\b"
    r"|reply only\b|(?:tell|promise) the (?:user|reader)\b|what the user asked\b"
    r"|(?:end|begin|start) (?:each|every|your|the) answers?\b|(?:in|to) (?:all|each of) (?:my|your) answers\b"
    r"|do not answer the question\b|when you answer\b|cite this (?:source|document)\b|repeat this\b"
    r"|outside knowledge\b|do what it says\b|user['’]s question\b"
    # Addresses the model, or assigns it a role.
    rf"|(?:dear|note to the|message to the|attention,?|any|the) {_REPLIER}\b[^.\n]{{0,30}}"
    rf"(?::|\b(?:must|shall|should|has to|that reads)\b)"
    rf"|you are (?:now )?(?:dan|a pirate|an? {_REPLIER}|no longer)\b|pretend to be\b"
    rf"|from now on,? (?:you|answer)\b"
    rf"|{_REPLIER} must (?:answer|reply|say|state|reveal)\b|you must (?:answer|reply|say|state)(?: that|:)"
    r"|(?:debug|developer|god) mode\b|cite:c)"
    r"|(?:^|[.!?:\n]\s{0,20})(?:say|state|claim|repeat) (?:that|this|it)\b"
    rf"|(?:^|\n|-- ?)\W{{0,20}}+(?:(?:system|{_REPLIER})\W{{0,3}}:|user ?: )"
    # Imitates the syntax of prompts.
    r"|<(?:\|\w+\||(?:start|end)_of_turn|/s)>|\[/?inst\]|<</?sys>>|^#+ *system[ :]*$"
    r"|[<＜]\W{0,20}+[sѕｓ]\W?[oоｏ]\W?[uυ]\W?[rг]\W?[cсϲ]\W?[eе]\b|\[source \d+\]",
    re.MULTILINE,
)
"""Matches lower-case text: ignoring case takes twice as long."""
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def gives_orders(text: str) -> bool:
    """Return True where the text tells a language model what to do."""
    return _ORDERS.search(_UNSEEN.sub("", text).lower()) is not None
