"""Recognises text that gives orders to the language model that reads it.

Such text is no evidence, so no claim is checked against it (`nodes/writing/claims.py`). The patterns are words and
forms that are rare in documents meant for people; docs/operations/attacks.md says how rare.
"""

import re

_REPLIER = r"(?:assistant|a\.?i\.?|chat ?bot|language model|llm|askgraph|gpt)"
_ORDERS = re.compile(
    # Revokes the rules, in the languages of known attacks.
    # Not the "ignore rules" of a program, which are a thing and no order, nor "don't forget the rules".
    r"\b(?:ignore(?!\s+(?:rule|pattern|file|list)s?\b)|disregard|(?<!n't )(?<!n’t )(?<!not )forget|override|bypass)\b"
    r"[^.\n]{0,40}\b(?:instructions?|rules|prompts?|guidelines|sources)\b"
    r"|\b(?:ignorier\w*|vergiss|missachte)\b[^.\n]{0,40}\b(?:anweisung|regel|vorgabe|befehl)\w*"
    r"|\b(?:ignore[rz]?|oublie[rz]?)\b[^.\n]{0,40}\b(?:consignes?|instructions?|règles?)\b"
    r"|\b(?:ignora|olvida)\b[^.\n]{0,40}\b(?:instrucciones|reglas)\b"
    # Dictates the reply.
    r"|\b(?:repl(?:y|ies)|respond|answer)\b[^.\n]{0,40}\b(?:only with|every question|all questions|any question)\b"
    # Not "Finance will reply with an approval", which tells of somebody.
    r"|(?<!\bwill )(?<!\bwould )\b(?:reply|respond|answer) with\b|\byou (?:will|would) (?:reply|respond|answer) with\b"
    r"|(?:^|[.!?:\n]\s{0,20})(?:say|state|claim|repeat) (?:that|this|it)\b"
    r"|\breply only\b|\b(?:tell|promise) the (?:user|reader)\b|\bwhat the user asked\b"
    r"|\b(?:end|begin|start) (?:each|every|your|the) answers?\b|\b(?:in|to) (?:all|each of) (?:my|your) answers\b"
    r"|\bdo not answer the question\b|\bwhen you answer\b|\bcite this (?:source|document)\b|\brepeat this\b"
    r"|\boutside knowledge\b|\bdo what it says\b|\buser['’]s question\b"
    # Addresses the model, or assigns it a role.
    rf"|\b(?:dear|note to the|message to the|attention,?|any|the) {_REPLIER}\b[^.\n]{{0,30}}"
    rf"(?::|\b(?:must|shall|should|has to|that reads)\b)"
    rf"|(?:^|\n|-- ?)\W{{0,20}}+(?:(?:system|{_REPLIER})\W{{0,3}}:|user ?: )"
    rf"|\byou are (?:now )?(?:dan|a pirate|an? {_REPLIER}|no longer)\b|\bpretend to be\b"
    rf"|\bfrom now on,? (?:you|answer)\b"
    rf"|\b{_REPLIER} must (?:answer|reply|say|state|reveal)\b|\byou must (?:answer|reply|say|state)(?: that|:)"
    r"|\b(?:debug|developer|god) mode\b"
    # Imitates the syntax of prompts.
    r"|<\|\w+\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|^#+ *system[ :]*$|</s>"
    r"|[<＜]\W{0,20}+[sѕｓ]\W?[oоｏ]\W?[uυ]\W?[rг]\W?[cсϲ]\W?[eе]\b|\[source \d+\]|\bcite:c",
    re.MULTILINE,
)
"""Matches lower-case text: ignoring case takes twice as long."""
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def gives_orders(text: str) -> bool:
    """Return True where the text tells a language model what to do."""
    return _ORDERS.search(_UNSEEN.sub("", text).lower()) is not None
