"""Questions that are made of what a text says."""

import pytest

from domain.text.starters import make_starters

ABOUT = {
    "en": "This text is about the work of the team, and it says what there is to know of it.\n\n",
    "de": "Dieser Text handelt von der Arbeit und sagt, was man davon wissen muss.\n\n",
    "fr": "Ce texte est pour les clients, et il dit tout ce qui est dans le contrat.\n\n",
    "es": "Este texto es para los clientes y dice todo lo que hay en el contrato.\n\n",
}


@pytest.mark.parametrize(
    ("language", "said", "asked"),
    [
        ("en", "The probation period lasts six months.", "How long does the probation period last?"),
        ("en", "Filters must be replaced every 6 months by two people.", "How often must filters be replaced?"),
        ("en", "The company was founded in 2009 by Ann Lee.", "When was the company founded?"),
        ("en", "Every employee has 30 days of leave.", "How many days of leave does every employee have?"),
        ("en", "The Falke has a warranty of 36 months.", "How long is the warranty of the Falke?"),
        ("en", "A night may cost up to 130 euros.", "How much may a night cost?"),
        ("en", "Two people are needed to raise the mast.", "How many people are needed to raise the mast?"),
        ("en", "The recovery time objective (RTO) is 4 hours.", "How long is the recovery time objective (RTO)?"),
        ("en", "The WS-400 is an automatic weather station.", "What is the WS-400?"),
        ("en", "## How to claim\n\nPhotograph the receipt.", "How do I claim?"),
        ("en", "## Where is the key kept?\n\nIn the safe.", "Where is the key kept?"),
        ("en", "The LM-2 is new.\n\nArticle | Price\n--- | ---\nLM-2 | 480\nSD-1 | 720", "What is the price of the LM-2?"),
        ("en", "Sensor | Interval\n--- | ---\nAir pressure | 12 months\nWind | 36 months", "What is the interval for air pressure?"),
        ("de", "Die Kündigungsfrist beträgt drei Monate.", "Wie lang ist die Kündigungsfrist?"),
        ("de", "Die Filter müssen alle sechs Monate gewechselt werden.", "Wie oft müssen die Filter gewechselt werden?"),
        ("de", "Rechnungen werden zehn Jahre lang aufbewahrt.", "Wie lange werden Rechnungen aufbewahrt?"),
        ("de", "Der Verein wurde im Jahr 1998 in Bonn gegründet.", "Wann wurde der Verein in Bonn gegründet?"),
        ("de", "Ein Konto ist eine Aufstellung von Buchungen.", "Was ist ein Konto?"),
        ("fr", "L'abonnement coûte 19 euros par mois.", "Combien coûte l'abonnement ?"),
        ("es", "La garantía dura 24 meses.", "¿Cuánto tiempo dura la garantía?"),
    ],
)  # fmt: skip
def test_a_sentence_a_heading_and_a_cell_become_questions(language: str, said: str, asked: str) -> None:
    text = ABOUT[language] + said
    first = next(make_starters(text))
    assert first.question == asked
    assert text[slice(*first.answer)].split("\n")[0] in said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "It lasts six months."),  # of what is not said
        ("en", "The warranty of this lasts 36 months."),
        ("en", "Below 10.8 V the station is off for two days."),
        ("en", "Files are not kept for 30 days."),
        ("en", "Berlin has 3 rivers."),  # a name, or a word that is large for its place
        ("en", "The page is a client of the service."),
        ("en", "## Can I use it there?\n\nNo."),
        ("en", "Article | Useful\n--- | ---\nLM-2 | 480\nSD-1 | 720"),  # no noun
        ("en", "Article | Approved by\n--- | ---\nLM-2 | 2 people\nSD-1 | 1 person"),
        ("de", "Die Ware wird nach vier Wochen geliefert."),
        ("de", "Es gilt zwei Jahre."),
    ],
)
def test_what_no_form_fits_becomes_none(language: str, said: str) -> None:
    assert list(make_starters(ABOUT[language] + said)) == []
