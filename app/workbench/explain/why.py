"""Says in a few lines why a run ended as it did: what decided, by how much, and what came next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.workbench.explain.passages import MAX_LEFT_OUT, find_source, list_left_out, read_passages
from app.workbench.replay.saved_run import SavedRun
from domain.documents import name_cited, name_place
from domain.library.citations import find_passage
from domain.outcome import ANSWERS, find_claimed
from domain.text.blocks import plain_text
from domain.text.claims import split_claims
from domain.text.markers import strip_markers

_DOUBTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "nothing_found": lambda why: (
        "there was no document to search"
        if why["scope_is_empty"]
        else f"nothing was found for “{_shorten(why['searched'])}”"
    ),
    "low_confidence": lambda why: f"the sources probably do not hold the whole answer ({why['confidence']:.2f})",
    "missing_parts": lambda why: f"no source answers {_enumerate(why['parts'])}",
    "missing_words": lambda why: f"no source has {_enumerate(why['words'])}",
    "other_language": lambda _: "the question is in another language than the sources",
    "nothing_quotable": lambda _: "no sentence of the sources answers by itself",
    "model_abstained": lambda why: f"{why['model']} said that the sources do not answer",
    "uncited": lambda why: (
        f"no source was found for {_enumerate(why['statements'])}"
        if why.get("statements")
        else "the model's answer cites no source"
    ),
    "nothing_supported": lambda why: f"none of the statements ({why['claims']}) was supported",
    "withdrawn": lambda why: f"withdrawn for want of support: {_enumerate(why['statements'])}",
    "beside_question": lambda _: "the answer does not answer the question",
    "retries_spent": lambda why: f"no search found enough, and none was left after {why['retries']} more",
    "over_budget": lambda why: f"the budget of {why['limit']} was spent",
    "ambiguous": lambda why: f"the question could mean {_enumerate([each['label'] for each in why['choices']])}",
}
"""The reasons for an outcome, in words."""
_LISTED = 3
"""Sources that have a line of their own."""
_LONGEST = 160
"""Characters of a quoted text."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: what it is about, and what was decided."""

    about: str
    text: str


def explain_run(run: SavedRun) -> dict[str, Any]:
    """Return `{run_id, facts}`: the decisive facts of a run, each with `about` and `text`."""
    facts = _list_facts(run)
    if run.record.cached:
        facts[2:] = _explain_origin(run.origin, facts[2:])
    return {"run_id": run.record.run_id, "facts": [asdict(fact) for fact in facts]}


def _explain_origin(origin: SavedRun | None, own: Sequence[Fact]) -> list[Fact]:
    """Explain an answer from the cache by the run that made it; by what it cites where that one is gone."""
    if origin is None:
        return [Fact("repeats", "the answer of a run that is not on record any more, or not yours to read"), *own]
    record = origin.record
    said = f"the answer of run {record.run_id} of {record.started_at:%Y-%m-%d %H:%M}, which the lines below explain"
    return [Fact("repeats", said), *_list_facts(origin)[2:]]


def _list_facts(run: SavedRun) -> list[Fact]:
    facts = _explain(run)
    place = max((number for number, fact in enumerate(facts, 1) if fact.about == "search"), default=len(facts))
    facts[place:place] = [Fact("left out", text) for text in _describe_left_out(run)]
    return facts


def _name_dropped(run: SavedRun) -> dict[str, str]:
    """Return the names of the final candidates that reached no source, by chunk."""
    final, passages = run.final, read_passages(run)
    titles = {source["document_id"]: source["title"] for source in final["sources"]}
    named = {}
    for each in final["candidates"]:
        passage = passages.get(each["chunk_id"])
        if find_source(final["sources"], each, passage) is None:
            title = titles.get(each["document_id"], "a passage whose title is not on the tape")
            name = name_place(passage["title"], passage["heading_path"]) if passage else title
            named[each["chunk_id"]] = name
    return named


def _describe_left_out(run: SavedRun) -> Iterator[str]:
    """Say what the threshold of similarity left out, of all that the searches found."""
    for step in run.steps:
        missed = [each for each in list_left_out(run, step) if each["missed"]] if step.node == "retrieve" else []
        if missed:
            nearest, floor = missed[0], step.values["profile"]["retrieval"]["similarity_threshold"]
            passage = run.unread.get(nearest["chunk_id"])
            name = name_place(passage["title"], passage["heading_path"]) if passage else "one that is gone"
            number = f"at least {MAX_LEFT_OUT}" if len(missed) == MAX_LEFT_OUT else str(len(missed))
            yield (
                f"profile.retrieval.similarity_threshold, {floor}, left out {number} passages; the nearest, {name}, "
                f"missed it by {nearest['missed']:.2f}"
            )


def _explain(run: SavedRun) -> list[Fact]:
    values, path = run.final, [step.node for step in run.steps]
    judged = [step.values for step in run.steps if step.node == "grade"]
    dropped = _name_dropped(run)
    return [
        Fact("outcome", _describe_outcome(values, path, judged)),
        Fact("question", _describe_question(values)),
        *(Fact("search", text) for text in _describe_searches(judged, values)),
        *(Fact("sources", text) for text in _describe_choice(values, dropped)),
        *(Fact("claim", text) for text in _describe_claims(values)),
        *(Fact("doubt", text) for text in _describe_doubts(values)),
        Fact("path", " → ".join(node for node in path if node != "__start__")),
    ]


def _describe_outcome(values: Mapping[str, Any], path: Sequence[str], judged: Sequence[Mapping[str, Any]]) -> str:
    outcome = (values.get("outcome") or "no outcome: it was stopped or failed").replace("_", " ")
    by = f" by {values['answered_by']}" if values.get("answered_by") else ""
    cached = ", from the cache" if "cache" in path else ""
    said = f"{outcome}{by} in mode {values.get('mode')}{cached}"
    if "grade" not in path and "cache" not in path:
        return said
    # An abstention resets the confidence. What decided is the confidence that grade had set.
    return f"{said}, {weigh(judged[-1] if judged else values)}"


def weigh(values: Mapping[str, Any]) -> str:
    """Compare the confidence with the thresholds that it passed or missed."""
    confidence = values.get("confidence", 0.0)
    knobs = values.get("profile", {}).get("grade", {})
    sufficient, caveat = knobs.get("sufficient", 0.6), knobs.get("caveat", 0.4)
    said = f"confidence {confidence:.2f}"
    if confidence >= sufficient:
        return f"{said}: {confidence - sufficient:.2f} above the {sufficient:.2f} that answers at once"
    missing = f"{said}: {sufficient - confidence:.2f} below the {sufficient:.2f} that answers at once"
    if confidence >= caveat:
        return f"{missing}, {confidence - caveat:.2f} above the {caveat:.2f} that answers with a caveat"
    return f"{missing}, {caveat - confidence:.2f} below the {caveat:.2f} that answers with a caveat"


def _describe_question(values: Mapping[str, Any]) -> str:
    asked, understood = values.get("question", ""), values.get("standalone_question", "")
    read = f"understood as “{_shorten(understood)}”" if understood and understood != asked else "taken as it was asked"
    reason = f" ({values['route_reason']})" if values.get("route_reason") else ""
    return f"“{_shorten(asked)}” was {read}; {str(values.get('route')).replace('_', ' ')}{reason}"


def _describe_searches(judged: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> Iterator[str]:
    tried = values.get("queries_tried", [])
    for number, found in enumerate(judged):
        query = tried[number] if number < len(tried) else found.get("query", "")
        yield (
            f"“{_shorten(query)}” found {len(found.get('candidates', []))} candidates, of which "
            f"{len(found.get('sources', []))} were read: {weigh(found)}"
            + (", so it searched again" if number + 1 < len(judged) else "")
        )


def _describe_choice(values: Mapping[str, Any], dropped: Mapping[str, str]) -> Iterator[str]:
    """Say which sources came first, and by how much the best that was dropped missed."""
    sources = values.get("sources", [])
    cited = {citation["marker"] for citation in values.get("citations", [])}
    for source in sources[:_LISTED]:
        place = name_cited(source)
        page = f", page {source['page']}" if source.get("page") else ""
        use = "cited" if source["number"] in cited else "not cited"
        # A document that was never replaced has one revision.
        replaced = source.get("revision", 0) > 1
        revision = f", revision {source['revision']} of {source.get('updated_at', '')[:10]}" if replaced else ""
        found = f", by {source['sql']}" if "sql" in source else ""
        yield f"{source['number']}. {place}{page}{revision}: {source['score']:.2f}, {use}{found}"
    if not sources:
        return
    left = [
        each
        for each in values.get("candidates", [])
        if each.get("relevance") is not None and each["chunk_id"] in dropped
    ]
    if left:
        best = max(left, key=lambda each: float(each["relevance"]))
        yield (
            f"the best that was dropped: {dropped[best['chunk_id']]} at {best['relevance']:.2f}, beside "
            f"{sources[-1]['score']:.2f} of the last that was read"
        )


def _describe_claims(values: Mapping[str, Any]) -> Iterator[str]:
    """Say which passage carries each claim, and what the check said of it."""
    if values.get("outcome") not in ANSWERS:
        return
    stated, end = find_claimed(values["answer"], values["framing"])
    answer = values["answer"][stated:end]
    sources = values.get("sources", [])
    # Lines of their own have the whole names of these.
    listed = {source["number"] for source in sources[:_LISTED]}
    by_number = {citation["marker"]: citation for citation in values.get("citations", [])}
    verdicts = values.get("verification", {}).get("claims", [])
    if verdicts:
        claims = [
            (each["text"], each["markers"], each["verdict"] + (f" ({each['reason']})" if each["reason"] else ""))
            for each in verdicts
        ]
    else:
        # A stored answer has its citations alone.
        stored = map(str, range(max(by_number, default=0)))
        spans = split_claims(answer, [source["chunk_id"] for source in sources] or list(stored))
        claims = [
            (answer[span.start : span.end], list(span.markers), "not checked in this mode")
            for span in spans
            if not span.about_documents
        ]
    for text, markers, verdict in claims:
        if not any(character.isalpha() for character in strip_markers(text)):
            # The number of an item, or a rule.
            continue
        said = strip_markers(text)
        places = []
        for cited in (by_number[number] for number in markers if number in by_number):
            # Another claim may rest on another section of the same source.
            source = next((each for each in sources if each["number"] == cited["marker"]), None)
            path = find_passage(cited, source, [said.strip()])["heading_path"] if source else cited["heading_path"]
            name = name_cited(cited) if "outside" in cited else name_place(cited["title"], path)
            is_listed = cited["marker"] in listed
            places.append(f"source {cited['marker']} ({[cited['title'], *path][-1]})" if is_listed else name)
        yield f"“{_shorten(plain_text(said))}” rests on {' and '.join(places) or 'nothing'}; {verdict}"


def _describe_doubts(values: Mapping[str, Any]) -> Iterator[str]:
    for reason in values.get("outcome_reasons", []):
        yield _DOUBTS[reason["code"]](reason)
    for each in values.get("degraded", []):
        yield f"{each['node']} fell back from {each['given_up']} to {each['instead']}: {each['message']}"


def _enumerate(texts: Sequence[str]) -> str:
    return ", ".join(f"“{_shorten(text)}”" for text in texts)


def _shorten(text: str) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
