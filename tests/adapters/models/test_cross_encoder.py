"""Against a real ONNX model, made by the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.adapters.rerankers import cross_encoder
from app.adapters.rerankers.cross_encoder import OnnxCrossEncoder
from domain.errors import ConfigurationError
from nodes.context import Ledger
from tests.contracts.reranker import SCOPE, RerankerContract, make_passage
from tests.tiny_cross_encoder import write_cross_encoder

QUESTION = "smoke detectors tested"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("cross-encoder"))


@pytest.fixture(scope="module")
def reranker(folder: Path) -> Iterator[OnnxCrossEncoder]:
    loaded = OnnxCrossEncoder.load(folder, threads=1)
    yield loaded
    loaded.close()


class TestOnnxCrossEncoder(RerankerContract):
    pass


async def test_scores_are_probabilities_in_the_order_of_the_passages(reranker: OnnxCrossEncoder) -> None:
    texts = ["Bread is baked at dawn.", "Smoke detectors are tested in May.", "Detectors were bought in 2019."]
    unrelated, answer, related = await reranker.score(SCOPE, QUESTION, [make_passage(text) for text in texts], Ledger())
    # The logit: shared tokens, and the separator that both sides end with, less six.
    assert unrelated == pytest.approx(1 / (1 + 2.718281828**5))
    assert answer == pytest.approx(1 / (1 + 2.718281828**2))
    assert related == pytest.approx(1 / (1 + 2.718281828**4))


async def test_batches_give_what_single_pairs_give(reranker: OnnxCrossEncoder) -> None:
    passages = [make_passage(f"Smoke {'detectors ' * (n % 4)} and {'more words ' * (n % 7)}") for n in range(20)]
    assert len(passages) > 2 * cross_encoder.BATCH
    together = await reranker.score(SCOPE, QUESTION, passages, Ledger())
    assert together == [(await reranker.score(SCOPE, QUESTION, [one], Ledger()))[0] for one in passages]
    assert len(set(together)) == 4


async def test_a_pair_is_cut_to_the_window_and_the_question_stays(reranker: OnnxCrossEncoder) -> None:
    near, far = await reranker.score(
        SCOPE, QUESTION, [make_passage("smoke " + "word " * 2000), make_passage("word " * 2000 + "smoke")], Ledger()
    )
    assert near > far
    [long_question] = await reranker.score(SCOPE, "smoke " * 1500, [make_passage("fire")], Ledger())
    assert 0 <= long_question < 0.5


async def test_a_model_without_token_types_is_used_too(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "m", inputs=("input_ids", "attention_mask", "attention_mask"))
    loaded = OnnxCrossEncoder.load(folder)
    scores = await loaded.score(SCOPE, QUESTION, [make_passage("Smoke.")], Ledger())
    loaded.close()
    assert scores == [pytest.approx(1 / (1 + 2.718281828**6))]


def test_another_model_has_another_name(folder: Path, tmp_path: Path) -> None:
    same, other = write_cross_encoder(tmp_path / "same"), write_cross_encoder(tmp_path / "other", bias=-5.0)
    names = []
    for path in (folder, same, other):
        loaded = OnnxCrossEncoder.load(path)
        names.append(loaded.name)
        loaded.close()
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), "ASKGRAPH_CROSS_ENCODER.*there is no file model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "there is no file tokenizer.json"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"noise"), "model.onnx is not a model that can be run"),
        (lambda folder: (folder / "model.onnx").write_bytes(b""), "cannot be used"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json cannot be read"),
        (
            lambda folder: write_cross_encoder(folder, inputs=("pixels", "attention_mask", "token_type_ids")),
            "it takes attention_mask, pixels, token_type_ids",
        ),
        (lambda folder: write_cross_encoder(folder, labels=3), r"scores of shape \(1, 3\)"),
        (lambda folder: write_cross_encoder(folder, bias=float("nan")), "no numbers"),
    ],
)
def test_what_cannot_be_used_is_refused_at_load(tmp_path: Path, spoil: Callable[[Path], object], says: str) -> None:
    folder = write_cross_encoder(tmp_path / "model")
    spoil(folder)
    with pytest.raises(ConfigurationError, match=says):
        OnnxCrossEncoder.load(folder)
