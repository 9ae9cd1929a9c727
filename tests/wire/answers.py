"""What the loopback model says: a small, deterministic reader that understands askgraph's prompts well enough.

It judges by shared words and numbers, so a test can tell beforehand what the "model" will find. It knows the
prompts only by what they must contain: sources in `<source number="1" …>` tags, a line `Question: …`, a numbered list
under `Claims:`, and the fields of the JSON schema that is asked for.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

_SOURCE = re.compile(r'<source number="(\d+)"[^>]*>\n(.*?)\n</source>', re.DOTALL)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
_CLAIM = re.compile(r"^(\d+)\. (.*?) \(([^()]*)\)$", re.MULTILINE | re.DOTALL)
_LISTED = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_EXACT_REPLY = re.compile(r"(?:reply with exactly|whole reply is): (.+)")
_ORDER = re.compile(r"always reply with exactly: (.+)")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\d|\w)[^.!?\n]*)*[.!?]?")
_SMALL_TALK = re.compile(
    r"\b(hi|hello|hey|thanks|thank you|good (morning|day|evening)|bye|who are you|how are you)\b", re.I
)
_OUT_OF_SCOPE = re.compile(r"\b(play (me )?(some )?(music|a song)|set an alarm|transfer money|order a pizza)\b", re.I)
_PRONOUN = re.compile(r"\b(it|its|they|them|their|that|those|this|these|he|she|his|her)\b", re.I)
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i if in is it its many may me much must my of "
        "on or our shall should so tell that the their them there these they this those to us was we were what when where "
        "which who whom whose why will with would you your",
    )
)
_NEGATIONS = frozenset({"not", "no", "never", "without", "cannot"})


def reply_to(messages: list[Json], schema: Json | None) -> str:
    """The reply's text; JSON where a schema is given."""
    if messages[-1]["role"] == "tool":
        # What the tool returned, and the question before it, read like any other prompt.
        asked = next(m["content"] for m in reversed(messages) if m["role"] == "user")
        messages = [*messages, {"role": "user", "content": f"{messages[-1]['content']}\n\n{asked}"}]
    schema = schema or _schema_in(messages)
    if schema is None:
        return _write(messages)
    fields = schema.get("properties", {})
    last = messages[-1]["content"]
    if "route" in fields:
        return json.dumps(_route(messages))
    if "confidence" in fields:
        wanted, held = _terms(_question(last)), _terms(" ".join(text for _, text in _sources(last)))
        return json.dumps({"confidence": sum(term in held for term in wanted) / len(wanted)})
    if "judgements" in fields:
        return json.dumps(_verify(last))
    if "rewrites" in fields:
        return json.dumps(_repair(last))
    if "scores" in fields:
        return json.dumps(_rank(last))
    return json.dumps(_fill(schema, schema.get("$defs", {})))


def act_on(messages: list[Json], tools: list[Json]) -> list[Json] | None:
    """The calls of a model that is offered tools, given as name and JSON schema: the first tool with the question in
    every field that is a text, until a message of the role `tool` has come. None: it writes."""
    if messages[-1]["role"] == "tool":
        return None
    name, schema = tools[0]["name"], tools[0]["parameters"]
    texts = [field for field, kind in schema.get("properties", {}).items() if kind.get("type") == "string"]
    filled = _fill(schema, schema.get("$defs", {}))
    return [{"name": name, "arguments": {**filled, **dict.fromkeys(texts, _question(messages[-1]["content"]))}}]


def _schema_in(messages: list[Json]) -> Json | None:
    """The JSON schema that a prompt spells out for a server which cannot be given one."""
    for message in reversed(messages):
        start = str(message["content"]).find('{"')
        if start >= 0 and "JSON" in message["content"]:
            candidate, _ = json.JSONDecoder().raw_decode(message["content"][start:])
            if isinstance(candidate, dict) and "properties" in candidate:
                return candidate
    return None


def _route(messages: list[Json]) -> Json:
    asked = [m["content"] for m in messages if m["role"] == "user"]
    question = asked[-1]
    if _OUT_OF_SCOPE.search(question):
        return {"route": "out_of_scope", "standalone_question": ""}
    if _SMALL_TALK.search(question) and len(question.split()) < 7:
        return {"route": "conversational", "standalone_question": ""}
    standalone = ""
    if len(asked) > 1 and (_PRONOUN.search(question) or len(_terms(question)) < 2):
        standalone = f"{question.rstrip('?')}, regarding {asked[-2].rstrip('?')}?"
    return {"route": "needs_retrieval", "standalone_question": standalone}


def _rank(prompt: str) -> Json:
    wanted = _terms(_question(prompt))
    scores = []
    for number, text in _sources(prompt):
        held = _terms(text)
        scores.append({"source": number, "relevance": round(sum(term in held for term in wanted) / len(wanted), 2)})
    return {"scores": scores}


def _verify(prompt: str) -> Json:
    sources = dict(_sources(prompt))
    judgements = []
    for number, claim in _LISTED.findall(prompt.rpartition("Claims:\n")[2]):
        bare = re.sub(r"\[[^\]]*\]", "", claim)
        named = [int(n) for n in re.findall(r"\d+", " ".join(re.findall(r"\[[^\]]*\]", claim)))]
        found = [each for each, text in sources.items() if _entails(text, bare)[0]]
        held = " ".join(sources.get(each, "") for each in named) if named else " ".join(sources.values())
        supported, reason = _entails(held, bare)
        if found or supported:
            verdict = {"verdict": "supported", "sources": found or named, "reason": ""}
        else:
            verdict = {"verdict": "not_found", "sources": [], "reason": reason}
        judgements.append({"claim": int(number), "kind": "statement", **verdict})
    return {"judgements": judgements, "answers_question": True}


def _entails(source: str, claim: str) -> tuple[bool, str]:
    numbers = set(re.findall(r"\d+(?:[.,]\d+)*", claim)) - set(re.findall(r"\d+(?:[.,]\d+)*", source))
    if numbers:
        return False, f"The source does not give {', '.join(sorted(numbers))}."
    if bool(_NEGATIONS & set(claim.casefold().split())) > bool(_NEGATIONS & set(source.casefold().split())):
        return False, "The source does not deny this."
    wanted, held = _terms(claim), _terms(source)
    absent = [term for term in wanted if term not in held]
    if not wanted or len(absent) > 0.4 * len(wanted):
        return False, f"The source does not mention {', '.join(absent[:3]) or 'this'}."
    return True, "The source says so."


def _repair(prompt: str) -> Json:
    return {"rewrites": [_best_sentence(prompt, claim) for _, claim, _ in _claims(prompt)]}


def _best_sentence(prompt: str, text: str) -> str:
    found = _matching_sentences(prompt, text, least=0.5)
    return f"{found[0][2].rstrip('.')} [{found[0][1]}]." if found else ""


def _write(messages: list[Json]) -> str:
    prompt = messages[-1]["content"]
    if not _sources(prompt):
        return "Hello! I answer questions from your documents. What would you like to know?"
    if order := _ORDER.search(messages[0]["content"]):
        return order.group(1).strip()
    found = _matching_sentences(prompt, _question(prompt), least=0.5)
    if found:
        return " ".join(f"{sentence.rstrip('.')} [{number}]." for _, number, sentence in found[:3])
    rule = _EXACT_REPLY.search(messages[0]["content"])
    return rule.group(1).strip() if rule else "The sources do not say."


def _matching_sentences(prompt: str, text: str, least: float) -> list[tuple[float, int, str]]:
    """(share of the text's words, source number, sentence), best first."""
    wanted = _terms(text)
    found = []
    for number, source in _sources(prompt):
        for sentence in _SENTENCE.findall(source):
            held = _terms(sentence)
            share = sum(term in held for term in wanted) / len(wanted) if wanted else 0.0
            if share >= least:
                found.append((share, number, " ".join(sentence.split())))
    return sorted(found, key=lambda match: -match[0])


def _sources(prompt: str) -> list[tuple[int, str]]:
    return [(int(number), text) for number, text in _SOURCE.findall(prompt)]


def _claims(prompt: str) -> list[tuple[int, str, str]]:
    listed = prompt.rpartition("Claims:\n")[2]
    return [(int(number), claim, note) for number, claim, note in _CLAIM.findall(listed)]


def _question(prompt: str) -> str:
    asked = _QUESTION.findall(prompt)
    return asked[-1] if asked else prompt


def _terms(text: str) -> list[str]:
    """Content words, with the commonest English endings cut off, without repeats."""
    words = (word for word in re.findall(r"\w+", text.casefold()) if word not in _STOP_WORDS)
    return list(dict.fromkeys(_stem(words)))


def _stem(words: Iterable[str]) -> Iterable[str]:
    for word in words:
        yield re.sub(r"(?<=\w{3})(ies|ing|ed|es|s|e|y)$", "", word)


def _fill(schema: Json, definitions: Json) -> Any:
    """A plausible value for a schema that no prompt of ours uses."""
    if "$ref" in schema:
        return _fill(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _fill(schema["anyOf"][0], definitions)
    kind = schema.get("type")
    if kind == "object":
        return {name: _fill(field, definitions) for name, field in schema.get("properties", {}).items()}
    if kind == "array":
        return [_fill(schema["items"], definitions)]
    return {"string": "text", "integer": 1, "number": 0.5, "boolean": True}.get(str(kind))
