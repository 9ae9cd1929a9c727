"""The statements of an answer and what they cite."""

import pytest

from domain.text.claims import MOST_SENTENCES, ClaimSpan, is_statement, split_claims
from domain.text.markers import strip_markers


def claims(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    split = split_claims(answer, ["a", "b", "c"])
    return [(answer[c.start : c.end], c.markers) for c in split if not c.about_documents]


LONG = "It lasts for 24 months, which is longer than what the law requires of anybody who sells a thing"


@pytest.mark.parametrize(
    ("answer", "claimed"),
    [
        # Its own markers, or those right behind it.
        (
            "It is so [1]. That too.[2][3] And this. [1, 2] End [2]",
            [("It is so [1].", (1,)), ("That too.[2][3]", (2, 3)), ("And this. [1, 2]", (1, 2)), ("End [2]", (2,))],
        ),
        # Without any, those that close its paragraph, but none of the next.
        (
            "First thing. Second thing [2].\n\nThird thing.",
            [("First thing.", (2,)), ("Second thing [2].", (2,)), ("Third thing.", ())],
        ),
        ("Rain falls.\n\nSnow melts [1].", [("Rain falls.", ()), ("Snow melts [1].", (1,))]),
        ("Rain falls.\n- Snow melts [1].", [("Rain falls.", ()), ("- Snow melts [1].", (1,))]),
        ("Rain falls.\nSnow melts [1].", [("Rain falls.", (1,)), ("Snow melts [1].", (1,))]),
        ("It lasts 24 months [2]. It is blue.", [("It lasts 24 months [2].", (2,)), ("It is blue.", (2,))]),
        ("It lasts 24 months [2].\n\nIt is blue.", [("It lasts 24 months [2].", (2,)), ("It is blue.", ())]),
        # Only those of sources, and none in code.
        ("Rain falls [4].", [("Rain falls [4].", ())]),
        ("Rain falls [2, 1, 2].", [("Rain falls [2, 1, 2].", (2, 1))]),
        ("Use `a[1]` here [9].", [("Use `a[1]` here [9].", ())]),
        ("It stops [2].\n```\naskgraph stop. Now.\n", [("It stops [2].", (2,))]),
        # Questions, headings, headers of tables and remarks about the documents claim nothing.
        (
            "# Answer\n\nThe documents may answer this only in part. These are the steps:\n\n- Press the button [1]\n\n"
            "Does that help?",
            [("- Press the button [1]", (1,))],
        ),
        (
            "## Support [1]\n\nTwo users.\n\nplan | has\n--- | ---\nBasic | one [2]",
            [("Two users.", ()), ("Basic | one [2]", (2,))],
        ),
        # A marker behind a full stop stays with its sentence, also before a lead-in.
        (f"{LONG}. [1] It has:\n\n- Two users [2]", [(f"{LONG}. [1]", (1,)), ("- Two users [2]", (2,))]),
        (
            f"It is blue. {LONG}. [1]\n\n- Two users",
            [("It is blue.", (1,)), (f"{LONG}. [1]", (1,)), ("- Two users", (1,))],
        ),
        # An item has its own, or those of the item that it is nested in, or of the lead-in.
        ("- Support [1]\n  - Two users\n- Storage [2]", [("- Support [1]", (1,)), ("- Two users", (1,)), ("- Storage [2]", (2,))]),
        (
            "The plan includes [1]:\n\n- Support by telephone [2]\n- Two users",
            [("The plan includes [1]:", (1,)), ("- Support by telephone [2]", (2,)), ("- Two users", (1,))],
        ),
    ],
)  # fmt: skip
def test_a_claim_rests_on_the_markers_that_are_meant_for_it(
    answer: str, claimed: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert claims(answer) == claimed


@pytest.mark.parametrize(
    "remark", ["The sources are old.", "These documents say little.", "The provided context is short."]
)
def test_a_remark_about_the_documents_rests_on_what_it_cites_only(remark: str) -> None:
    assert split_claims(f"{remark} It rains [1].", ["a"])[0] == ClaimSpan(0, len(remark), (), about_documents=True)
    assert claims(f"{remark[:-1]} [1].") == [(f"{remark[:-1]} [1].", (1,))]


@pytest.mark.parametrize(
    ("sentence", "states"),
    [
        ("It rains.", True),
        ("Does it rain?", False),
        ("The steps:", False),
        ("# Rain", False),
        ("**Rain in the mountains**", False),
        ("**It rains.**", True),
        ("**30 days**", True),
        ("It is so.", False),
        ("", False),
    ],
)
def test_a_statement_says_something(sentence: str, states: bool) -> None:
    assert is_statement(sentence) is states


@pytest.mark.parametrize(
    "formula", ["$$\nM = \\frac{30}{12}. N = 3.\n$$", "\\[\n  x = 1. y = 2\n  \\]", "$x = 1. y = 2$", "\\(a. b\\)"]
)
def test_a_formula_is_no_two_statements_and_no_mark_is_one(formula: str) -> None:
    assert claims(f"It rains [1].\n\n{formula}\n\nIt pours [2].")[1:-1] == [(formula, ())]
    assert claims(f"1. It rains [1].\n2.\n  {formula}\n3. It pours [2].")[1:-1] == [(f"2.\n  {formula}", ())]
    assert claims("Costs: $5. It is $3 more [1].")[0] == ("Costs: $5.", (1,))


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_is_no_claim(fence: str) -> None:
    code = f"{fence}sh\naskgraph serve.\n\naskgraph stop. Now.\n{fence}"
    assert claims(f"Run this [1]:\n\n{code}\n\nIt stops [2].") == [("Run this [1]:", (1,)), ("It stops [2].", (2,))]
    assert claims(f"It stops [2].\n{code}") == [("It stops [2].", (2,))]


def cite(answer: str) -> dict[str, tuple[int, ...]]:
    """The statements of an answer, without markers, with what each cites."""
    return {strip_markers(answer[c.start : c.end]).strip(): c.markers for c in split_claims(answer, ["a", "b", "c"])}


@pytest.mark.parametrize(
    "answer",
    [
        "The plan includes [1]:\n\n- Support by telephone\n- Two users",
        "The plan includes the following [1]:\n- Support by telephone\n- Two users",
        "To reset it [1]:\n\n1. Support by telephone\n2. Two users",
        "Plans and what they have [1]\n\nplan | has\n--- | ---\nSupport by telephone | yes\nTwo users | no",
        "Support by telephone [1]\n: Two users",
        "The plan has two parts [1].\n\n- Support by telephone\n- Two users",
        "The prices stand in this table, which was last changed by the shop in the spring of the year: [1]\n\n"
        "plan | has\n--- | ---\nSupport by telephone | yes\nTwo users | no",
        "Support by telephone.\nTwo users.\n\nSource: [1]",
        "- Support by telephone\n- Two users\n\n*Quelle: [1]*",
        "plan | has\n--- | ---\nSupport by telephone | yes\nTwo users | no\n\n[1]",
        "- Support by telephone [1]\n  - Two users\n  - One line",
    ],
)
def test_the_marker_of_a_lead_in_a_caption_or_a_term_or_below_covers_its_block(answer: str) -> None:
    for statement, markers in cite(answer).items():
        assert markers == (1,), statement


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("漢。" * 5000, MOST_SENTENCES),
        ("a\n: bee [1]\n" * 300, MOST_SENTENCES // 2),
        ("Rain\n\n" * 300, MOST_SENTENCES),
        ("Rain falls. " + "and rain " * 10_000, 1),
        ("and rain " * 10_000, 0),
    ],
)
def test_the_rest_of_a_long_answer_is_one_piece_that_nobody_read(answer: str, read: int) -> None:
    *split, rest = split_claims(answer, ["a"])
    assert (len(split), any(claim.unread for claim in split)) == (read, False)
    assert rest == ClaimSpan(rest.start, len(answer.rstrip()), (), unread=True)
    assert not answer[split[-1].end if split else 0 : rest.start].strip()
