"""Finding the passages that answer, and quoting them exactly."""

import numpy as np
import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Source
from domain.ports.judgement import Quote
from domain.profile import LONG_ANSWER, SHORT_ANSWER
from domain.scope import Scope
from domain.text.terms import find_terms
from nodes.generate.local import LocalFinder
from nodes.reading.choosing import Passage, add_second, choose_passages
from nodes.reading.questions import SEVERAL, asks_for, read_pair, read_parts
from nodes.reading.units import Unit, split_units
from nodes.writing.quoting import render_quote
from tests.sources import make_source
from tests.unit_scorers import DownUnitScorer, make_unit_scorer


def source(
    number: int, text: str, *, document: str = "", start: int = 0, title: str = "Handbook", score: float = 0.8
) -> Source:
    return make_source(text, number=number, document_id=document or f"d{number}", title=title, start=start, score=score)


HANDBOOK = source(
    1,
    "# Lindenhof W2\n\nThe Lindenhof W2 is a coffee machine for offices. It was designed by Maria Keller in Basel. "
    "The warranty lasts 24 months from the date of purchase. Water damage is not covered. "
    "Descale the machine every three months because limestone blocks the valves.",
    start=1000,
)
CANTEEN = source(
    2, "The canteen opens at 11:30 and closes at 14:00. Vegetarian dishes are served every day.", title="Canteen"
)
RESERVES = "It is closed to visitors. " * 40
STEPS = (
    "## Resetting the router\n\nTo reset the router:\n\n1. Unplug it.\n2. Wait ten seconds.\n3. Plug it in again.\n\n"
    "Then run:\n\n```sh\nrouterctl restore\n  --all\n```"
)
PRICES = (
    "Prices in euros, 2026\n\nMachine | Price | Warranty\n--- | --- | ---\nW100 | 410 | 12 months\n"
    "W200 | 520 | 24 months\nW400 | 990 | 36 months"
)


async def quotes_of(
    question: str, sources: list[Source], embedder: OnnxEmbedder, *, typed: str | None = None
) -> list[Quote]:
    quotes = await LocalFinder(make_unit_scorer(embedder)).find(
        question, sources, scope=Scope("default"), most=2, typed=typed
    )
    for quote in quotes:
        origin = next(s for s in sources if s["number"] == quote.number)
        assert origin["text"][quote.start - origin["start"] : quote.end - origin["start"]] == quote.text
    return quotes


def test_what_is_struck_out_is_no_unit() -> None:
    text = (
        "~~Members may cancel within 14 days. They pay 5 euros.~~ Members may cancel within 30 days.\n\n"
        "The rent is ~~1,450 euros~~ 1,200 euros.\n\n- ~~Room 12~~\n- Room 45\n\n"
        "Supplier | State\n--- | ---\n~~Omega~~ | ~~active~~\nDelta | active\n\n```\n~~a~~\n```"
    )
    assert [unit.text for unit in split_units(source(1, text))] == [
        "Members may cancel within 30 days.",
        "The rent is ~~1,450 euros~~ 1,200 euros.",
        "- Room 45",
        "Delta | active",
        "```\n~~a~~\n```",
    ]


async def test_what_is_struck_out_is_never_quoted(embedder: OnnxEmbedder) -> None:
    lease = source(
        1,
        "# Lease\n\nThe rent is due on the first day.\n\n~~The tenant may sublet the flat without asking.~~\n\n"
        "Subletting needs the landlord's consent.",
    )
    for question in ("May the tenant sublet the flat without asking?", "What does the lease say?"):
        assert not any("~~" in quote.text for quote in await quotes_of(question, [lease], embedder))


async def test_a_detailed_answer_goes_on_where_a_brief_one_ends(embedder: OnnxEmbedder) -> None:
    finder, question = LocalFinder(make_unit_scorer(embedder)), "When does the canteen open?"
    [brief] = await finder.find(question, [CANTEEN], scope=Scope("default"), most=1)
    [detailed] = await finder.find(question, [CANTEEN], scope=Scope("default"), most=1, detailed=True)
    assert brief.text in detailed.text
    assert "Vegetarian dishes" in detailed.text
    assert "Vegetarian dishes" not in brief.text


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How long is the warranty of the Lindenhof W2?", "24 months"),
        ("Who designed the coffee machine?", "Maria Keller"),
        ("When does the canteen open?", "11:30"),
        ("Why must the machine be descaled?", "limestone"),
        ("Is water damage covered?", "not covered"),
    ],
)
async def test_the_best_passage_answers(question: str, answer: str, embedder: OnnxEmbedder) -> None:
    assert answer in (await quotes_of(question, [HANDBOOK, CANTEEN], embedder))[0].text


LEAVE = (
    "(1) Der Urlaub beträgt jährlich mindestens 24 Werktage. Als Werktage gelten alle Kalendertage, die nicht "
    "Sonn- oder gesetzliche Feiertage sind.\n\n" + "Der Arbeitgeber führt ein Verzeichnis aller Jugendlichen. " * 20
)
OPTIONS = "--args\n: What remains is an argument of the program.\n\n--arg name value\n: Binds a variable to the value."
SAVING = (
    "autosave_interval\n: Saves what is in memory. Defaults to 1800 seconds (30 minutes).\n\n"
    "autosave_on_changes\n: The broker saves the database to disk after more than 7 changes."
)
CAPTIONED = "Example 6.5. Automatic update script\n\n```sh\nyes | updater --all\n```"


@pytest.mark.parametrize(
    ("question", "text", "said"),
    [
        ("Wie viele Urlaubstage stehen mir zu?", LEAVE, "24 Werktage"),
        ("what does the jq --arg do for arguments of the program", OPTIONS, "Binds"),
        ("how often does the broker save the memory", SAVING, "30 minutes"),
        ("automatic update script", CAPTIONED, "updater --all"),
    ],
)
async def test_of_one_text_the_passage_is_quoted_that_the_question_is_for(
    question: str, text: str, said: str, embedder: OnnxEmbedder
) -> None:
    assert said in (await quotes_of(question, [source(1, text)], embedder))[0].text


async def test_a_question_for_one_thing_gets_a_short_answer(embedder: OnnxEmbedder) -> None:
    long = source(1, RESERVES + "The reserve was founded in 1938 by Ida Brandt. " + RESERVES, title="Reserve")
    quotes = await quotes_of("When was the reserve founded?", [long], embedder)
    assert "1938" in quotes[0].text
    assert sum(len(quote.text.split()) for quote in quotes) <= SHORT_ANSWER


@pytest.mark.parametrize("said", [0, 20])
def test_an_answer_stays_short_with_its_markers_and_with_what_it_has_already(said: int) -> None:
    units = split_units(source(1, "\n\n".join(f"Founded in {year}." for year in range(1900, 1960))))
    shares = np.full(len(units), 0.1, dtype=np.float32)
    [passage] = choose_passages(units, shares, 1, SHORT_ANSWER - said, several=False)
    words = 4 * (passage.last - passage.first + 1)  # with the marker behind each paragraph
    assert words == passage.words == SHORT_ANSWER - said


async def test_the_header_of_a_row_is_read_with_it() -> None:
    talk = source(1, "In later years a permit is larger.")
    fees = source(2, "Parking permit of residents | Fee\n--- | ---\nfirst year | 40\nlater years | 55", title="Fees")
    finder, question = LocalFinder(DownUnitScorer()), "the permit for parking in later years"
    [best, *_] = await finder.find(question, [talk, fees], scope=Scope("default"), most=2)
    assert "later years | 55" in best.text


async def test_steps_come_whole_with_their_code(embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of("How do I reset the router?", [source(1, STEPS), CANTEEN], embedder)
    answer = render_quote(quotes[0], "[1]")
    assert answer.startswith("To reset the router:\n\n1. Unplug it.\n2. Wait ten seconds.\n3. Plug it in again. [1]")
    assert answer.endswith("```sh\nrouterctl restore\n  --all\n```\n\n[1]")


async def test_a_row_comes_under_its_header(embedder: OnnxEmbedder) -> None:
    many = PRICES + "".join(f"\nK{n} | {n}0 | {n} months" for n in range(11, 60))
    quotes = await quotes_of("How long is the warranty of the W400?", [source(1, many)], embedder)
    answer = render_quote(quotes[0], "[1]")
    assert "Machine | Price | Warranty\n--- | --- | ---\n" in answer
    assert "W400 | 990 | 36 months" in answer
    assert "K59" not in answer


PRICE_LIST = source(
    1,
    "# Prices and warranty\n\n## Delivery\n\nThe WS-200 is delivered within one week, the WS-400 within four weeks.\n\n"
    "## Warranty\n\nThe warranty lasts 36 months. Filter caps are wear parts and are not covered.\n\n"
    "## Stations\n\nArticle | Price\n--- | ---\nWS-200 | 690\nWS-400 | 3,450",
    title="Prices and warranty",
)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "How long is the warranty of the W2, and what does it cost?",
            ["How long is the warranty of the W2?", "what does it cost? (long warranty W2)"],
        ),
        (
            "Who pays? and until when must I ask? (holiday)",
            ["Who pays? (ask holiday)", "until when must I ask? (pays holiday)"],
        ),
        (
            "How much is the Falcon and what does Wren cost? And what is B12?",
            ["How much is the Falcon?", "what does Wren cost?", "And what is B12?"],
        ),
        ("Wie lange gilt sie und wer zahlt?", ["Wie lange gilt sie? (zahlt)", "wer zahlt? (lange)"]),
        ("Price of the W2 and which tax is due", ["Price of the W2?", "which tax is due? (Price W2)"]),
        ("How is it on Monday and Friday when closed?", []),
        ("How and when is it calibrated?", []),
        ("What happens when it fails?", []),
        ("If it rains, what do I do?", []),
    ],
)
def test_a_question_for_several_things_has_parts(question: str, parts: list[str]) -> None:
    assert read_parts(question) == parts


async def test_each_part_is_quoted_and_two_that_stand_together_once(embedder: OnnxEmbedder) -> None:
    finder = LocalFinder(make_unit_scorer(embedder))

    async def find(question: str) -> str:
        quotes = await finder.find(question, [PRICE_LIST], scope=Scope("default"), most=2)
        return "\n".join(quote.text for quote in quotes)

    apart = await find("How long is the warranty, and what is the price of the WS-400?")
    assert "36 months" in apart
    assert "3,450" in apart
    assert (await find("How long is the warranty, and what is not covered?")).count("36 months") == 1


@pytest.mark.parametrize(
    ("question", "several", "amount"),
    [
        ("How do I reset the router?", True, False),
        ("how early do I tell my manager", False, True),
        ("what are the company values?", True, False),
        ("Jamf Pro vs Jamf Protect?", True, False),
        ("When is it due and who approves it?", True, True),
        ("Who designed it?", False, False),
        ("Please name the partners", True, False),
        ("Who changes my legal name?", False, False),
        ("Wie aktualisiere ich die Software?", True, False),
        ("Wie lange dauert die Probezeit?", False, True),
        ("Comment puis-je réinitialiser le routeur ?", True, False),
        ("¿Cuánto cuesta un permiso?", False, True),
    ],
)
def test_a_question_shows_what_it_asks_for(question: str, several: bool, amount: bool) -> None:
    assert (asks_for(question, *SEVERAL), asks_for(question, "amount")) == (several, amount)


def test_units_carry_what_they_cannot_be_read_without() -> None:
    text = f"{STEPS}\n\n{PRICES}"
    units = split_units(source(1, text))

    def show(unit: Unit) -> list[str]:
        return [text[start:end] for start, end in unit.spans]

    assert [unit.kind for unit in units] == ["steps"] * 3 + ["paragraph", "code"] + ["table"] * 3
    assert show(units[1]) == ["2. Wait ten seconds.", "To reset the router:", "## Resetting the router"]
    assert "## Resetting the router" in units[4].context
    assert show(units[5])[1].startswith("Prices in euros, 2026\n\nMachine | Price | Warranty")
    assert show(units[5])[2] == "## Resetting the router"


async def test_of_questions_and_answers_the_answer_is_quoted_under_its_question(embedder: OnnxEmbedder) -> None:
    text = (
        "Q: Can family members use the gym?\n\nA: Unfortunately not.\n\nQ: Can I use the gym at night?\n\n"
        "A: Yes, with your badge.\n\n" + RESERVES
    )
    quotes = await quotes_of("can my wife use the gym", [source(1, text)], embedder)
    assert quotes[0].text.startswith("Q: Can family members use the gym?\n\nA: Unfortunately not.")


async def test_a_heading_that_asks_comes_with_its_answer(embedder: OnnxEmbedder) -> None:
    text = "#### Does insurance cover us abroad?\n\n- It does not.\n- Buy your own.\n\n#### Who pays?\n\nNobody. It is free."
    quotes = await quotes_of("Is my insurance valid abroad?", [source(1, text)], embedder)
    assert (quotes[0].text, quotes[0].heading) == ("- It does not.\n- Buy your own.", "Does insurance cover us abroad?")


async def test_a_quote_stands_under_its_section_unless_it_says_its_name(embedder: OnnxEmbedder) -> None:
    text = (
        "# Pool\n\n## poolSize\n\nType: number\n\nDefault: 5\n\n## Idle timeout\n\nThe idle timeout is 60 s by default."
    )
    [size, *_] = await quotes_of("default of poolSize", [source(1, text)], embedder)
    assert "Default: 5" in size.text
    assert size.heading == "poolSize"
    [timeout, *_] = await quotes_of("What is the default idle timeout?", [source(1, text)], embedder)
    assert "60 s" in timeout.text
    assert timeout.heading == ""


async def test_a_passage_does_not_go_on_under_another_heading(embedder: OnnxEmbedder) -> None:
    text = "## Discounts\n\nSchools get 20 %.\n\n## Warranty\n\nIt lasts 36 months. Batteries are not covered.\n\n## Delivery\n\nIt is free."
    [quote, *_] = await quotes_of("How long is the warranty and what is not covered?", [source(1, text)], embedder)
    assert quote.text == "It lasts 36 months. Batteries are not covered."


def test_a_part_of_code_is_read_and_quoted_as_code() -> None:
    [code, note] = split_units(source(1, "run()\n```\n\nNote: It runs.") | {"lead": "```python"})
    assert (code.kind, code.text, code.introduction) == ("code", "run()\n```", "```python")
    assert (note.kind, note.text) == ("paragraph", "Note: It runs.")
    unfinished = Quote(1, 0, 5, "run()", lead="```python")
    assert render_quote(unfinished, "[1]") == "```python\nrun()\n```\n\n[1]"


def test_code_in_a_long_item_is_one_unit() -> None:
    text = f"- {'A long item says much. ' * 20}\n\n  ```c\n  int a;\n\n  int b;\n  ```\n\n  Then it ends."
    assert [unit.text for unit in split_units(make_source(text))][-2:] == [
        "```c\n  int a;\n\n  int b;\n  ```",
        "Then it ends.",
    ]


async def test_no_sources_and_headings_alone_give_no_quotes(embedder: OnnxEmbedder) -> None:
    assert await quotes_of("When does the canteen open?", [], embedder) == []
    assert await quotes_of("When does the canteen open?", [source(1, "## The canteen")], embedder) == []


async def test_without_the_model_words_decide() -> None:
    finder = LocalFinder(DownUnitScorer())
    [quote, *_] = await finder.find("When does the canteen open?", [CANTEEN], scope=Scope("default"), most=2)
    assert "11:30" in quote.text


async def test_a_follow_up_is_answered_briefly(embedder: OnnxEmbedder) -> None:
    steps = source(1, "To reset the router:\n\n" + "\n".join(f"{n}. Press the key number {n}." for n in range(1, 31)))
    first, typed = "How do I reset the router?", "And how do I press it?"

    async def count_words(question: str, typed: str | None = None) -> int:
        return sum(len(quote.text.split()) for quote in await quotes_of(question, [steps], embedder, typed=typed))

    assert await count_words(first) > SHORT_ANSWER
    assert await count_words(f"{typed} (router reset)", typed) <= SHORT_ANSWER
    assert await count_words(first, "List them all") > SHORT_ANSWER


def test_a_passage_never_ends_with_what_announces_the_next() -> None:
    units = split_units(source(1, "It opens at nine.\n\nThere are three doors:\n\n## Doors\n\nThe first is red."))
    shares = np.array([0.2, 0.7, 0.1], dtype=np.float32)
    [passage] = choose_passages(units, shares, 1, LONG_ANSWER, several=True)
    assert (passage.first, passage.last) == (0, 0)


@pytest.mark.parametrize(
    ("text", "best", "quoted"),
    [
        ("See this:\n\n```\nrun\n```\n\nIt runs.", 1, (0, 1)),
        ("Put this in the file:\n\n```\nx /tmp\n```\n\nThat keeps it.\n\nIt is old.", 2, (0, 2)),
        ("Put this in the file:\n\n```\nx /tmp\n```\n\nLogs are kept.\n\nIt is old.", 2, (2, 2)),
        ("Put this:\n\n```\nx\nx\nx\nx\n```\n\nThat keeps it.", 2, (2, 2)),
        (f"NO_SPACE\n: Leave it out. {'It lingers. ' * 42}", 1, (0, 1)),
        (f"OTHER\n: Leave it out. {'It lingers. ' * 42}", 1, (1, 1)),
    ],
)
def test_what_cannot_be_read_without_the_one_before_begins_with_that(
    text: str, best: int, quoted: tuple[int, int]
) -> None:
    units = split_units(source(1, text))
    shares = np.zeros(len(units), dtype=np.float32)
    shares[best] = 0.9
    [passage] = choose_passages(units, shares, 1, SHORT_ANSWER, several=False, wanted=find_terms("NO_SPACE"))
    assert (passage.first, passage.last) == quoted


async def test_an_item_that_stands_alone_is_quoted_with_what_it_announces(embedder: OnnxEmbedder) -> None:
    text = "## Options\n\n- `Sender` - string (default: root)\n\nUse this value.\n\n- `Report` - string\n\nIt may be always or never."
    quotes = await quotes_of("values of Report", [source(1, text)], embedder)
    assert quotes[0].text.endswith("It may be always or never.")


def test_what_stands_between_units_counts_too() -> None:
    units = split_units(source(1, "\n".join(f"- {'word ' * 10}{n}." for n in range(40))))
    shares = np.full(len(units), 1 / len(units), dtype=np.float32)
    [passage] = choose_passages(units, shares, 1, LONG_ANSWER, several=True)
    quoted = units[0].source["text"][units[passage.first].start : units[passage.last].end]
    assert len(quoted.split()) < passage.words <= LONG_ANSWER


async def test_a_row_far_down_a_long_table_is_read_and_quoted_under_its_header(embedder: OnnxEmbedder) -> None:
    lead = "Prices in euros, 2026\n\nMachine | Price | Warranty\n--- | --- | ---"
    part = source(1, "\n".join(f"W{n} | {n + 110} | {n} months" for n in range(300, 303))) | {"lead": lead}
    bare = source(2, "W301 | 9 pieces | shelf 4")
    [first, *_] = split_units(part)
    assert first.introduction == lead
    quotes = await quotes_of("What is the price of the W301 in euros?", [bare, part], embedder)
    assert quotes[0].number == 1
    assert render_quote(quotes[0], "[1]").startswith(lead)
    assert split_units(source(1, "It opens at nine.") | {"lead": lead})[0].introduction == ""
    # Without a figure in its first row, the part reads as a table with a header of its own.
    worded = source(1, "W300 | on request | none\nW301 | free | for life") | {"lead": lead}
    assert [(unit.text[:4], unit.introduction) for unit in split_units(worded)] == [("W300", lead), ("W301", lead)]


async def test_a_sentence_of_another_document_with_another_number_is_quoted_too(embedder: OnnxEmbedder) -> None:
    first = source(1, "A hotel may cost 130 euros per night.", score=0.9)
    other = source(2, "A hotel may cost 150 euros per night.", title="Old rules", score=0.1)
    same = source(3, "A hotel may cost 130 euros per night.", title="Copy", score=0.1)
    question = "How much may a hotel cost per night?"
    assert [q.number for q in await quotes_of(question, [first, other], embedder)] == [1, 2]
    meals = source(4, "A meal may cost 40 euros per day.", title="Meals", score=0.1)
    assert 4 not in [q.number for q in await quotes_of(question, [first, meals], embedder)]
    assert [q.number for q in await quotes_of(question, [first, same, other], embedder)][:2] == [1, 2]


def test_a_rival_does_not_make_an_answer_too_long() -> None:
    best, second, conflict = Passage(0, 3, 60, 0.8), Passage(5, 5, 10, 0.2), Passage(9, 9, 12, 0.01)
    assert add_second([best, second], conflict, 2, 72) == [best, conflict]
    assert add_second([best, second], conflict, 3, 72) == [best, conflict]
    assert add_second([best, second], conflict, 3, 71) == [best, second]
    assert add_second([best, conflict], conflict, 2, 72) == [best, conflict]


SETTINGS = source(
    3,
    "## Connections\n\n`reserved_connections` (`integer`)\n: Keeps three connections for superusers. The default is "
    "three connections.\n\n`connections` (`integer`)\n: Limits the connections at once. The default is 100.\n\n"
    "`connections_file` (`string`)\n: Names the file of connections. The default is none.",
    title="Settings of the server",
)


@pytest.mark.parametrize(
    ("question", "name", "said"),
    [
        ("default of connections", "`connections` (`integer`)", "100"),
        ("reserved_connections", "`reserved_connections` (`integer`)", "superusers"),
        ("what is connections_file?", "`connections_file` (`string`)", "Names the file"),
    ],
)
async def test_a_named_entry_is_quoted_and_no_neighbour_of_a_longer_name(
    question: str, name: str, said: str, embedder: OnnxEmbedder
) -> None:
    [quote] = await quotes_of(question, [SETTINGS], embedder)
    assert render_quote(quote, "[3]").startswith(f"{name}\n: ")
    assert said in quote.text


@pytest.mark.parametrize(
    "names", [("connections_file", "reserved_connections"), ("reserved_connections", "connections_file")]
)
async def test_two_entries_that_are_named_are_both_quoted(names: tuple[str, str], embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of(f"default of {names[0]} and of {names[1]}", [SETTINGS], embedder)
    said = " ".join(quote.text for quote in quotes)
    assert "default is none" in said
    assert "superusers" in said


async def test_an_entry_is_quoted_with_the_next_only_where_a_list_is_asked_for(embedder: OnnxEmbedder) -> None:
    how, *_ = await quotes_of("how can I limit the number of connections at once?", [SETTINGS], embedder)
    assert how.text.endswith("The default is 100.")
    listed, *_ = await quotes_of("which settings of connections are there?", [SETTINGS], embedder)
    assert listed.text.count("The default is") > 1


async def test_a_list_that_breaks_off_says_so(embedder: OnnxEmbedder) -> None:
    for items, goes_on in ((5, False), (50, True)):
        text = "To reset the router:\n\n" + "".join(f"{n}. Push the button of board {n}.\n" for n in range(1, items))
        [quote] = await quotes_of("How do I reset the router?", [source(1, text)], embedder)
        assert (quote.goes_on, render_quote(quote, "[1]").endswith(". [1] …")) == (goes_on, goes_on)


async def test_what_a_manual_page_is_about_is_said_by_its_name_line(embedder: OnnxEmbedder) -> None:
    text = "## NAME\n\ngit-gc - Cleanup unnecessary files\n\n## SYNOPSIS\n\n```\ngit gc [--auto]\n```\n\n## DESCRIPTION\n\n"
    page = source(4, f"{text}git gc runs housekeeping tasks, with --auto only where there are many loose objects.")
    [quote] = await quotes_of("what is git gc?", [page], embedder)
    assert quote.text == "git-gc - Cleanup unnecessary files"
    quote, *_ = await quotes_of("when does git gc --auto run?", [page], embedder)
    assert "loose objects" in quote.text


async def test_two_things_that_are_compared_are_quoted_under_their_names(embedder: OnnxEmbedder) -> None:
    question = "What is the difference between connections and reserved_connections?"
    one, other = await quotes_of(question, [SETTINGS], embedder)
    assert (one.heading, other.heading) == ("connections", "reserved_connections")
    assert "at once" in one.text
    assert "superusers" in other.text


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the difference between git reset --soft and --hard?", ["git reset --soft", "git reset --hard"]),
        (
            "pip --use-feature or --use-deprecated, what's the difference?",
            ["pip --use-feature", "pip --use-deprecated"],
        ),
        ("unbound local-zone deny vs refuse", ["unbound local-zone deny", "unbound local-zone refuse"]),
        ("How often are laptops replaced in engineering vs elsewhere?", []),
        ("What are the values before and after, and was the difference significant?", []),
    ],
)
def test_two_things_are_compared_by_their_whole_names(question: str, names: list[str]) -> None:
    assert read_pair(question)[0] == names


async def test_what_two_files_say_is_quoted_once(embedder: OnnxEmbedder) -> None:
    text = "The canteen opens at half past eleven and closes at two."
    quotes = await quotes_of("When does the canteen open?", [source(1, text), source(2, text)], embedder)
    assert len(quotes) == 1


@pytest.mark.parametrize(
    ("table", "quoted"),
    [
        ("Year | Spring | Autumn\n--- | --- | ---\n2023 | 700 | 714\n2024 | 740 | 754", "Year | Spring | Autumn\n2024 | 740 | 754"),
        ("2023 | 700 | 714\n2024 | 740 | 754", "2023 | 700 | 714\n2024 | 740 | 754"),
    ],
)  # fmt: skip
async def test_a_sentence_that_introduces_a_table_brings_its_row(
    table: str, quoted: str, embedder: OnnxEmbedder
) -> None:
    lead = "These are the sales of the Hauge plant in euros, by year and season."
    sources = [source(1, f"{lead}\n\n{table}")]
    finder, question = LocalFinder(make_unit_scorer(embedder)), "sales of the Hauge plant in autumn 2024"
    [quote] = await finder.find_nearest(question, sources, scope=Scope("default"), most=3)
    shown = f"{quote.lead}\n{quote.text}".replace("--- | --- | ---\n", "")
    assert shown == f"{lead}\n{quoted}"
