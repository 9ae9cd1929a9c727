"""Calibrate an exported reader and write what the service runs:
`python -m training.calibrate --reader whole.onnx --data DATA --out app/adapters/data/reader.onnx`.

Fits probability = logistic(slope · logit + offset) on the answerability of held-out documents. The file that is written
is a cross-encoder with that one logit, calibrated; the service uses nothing else of the model. Prints how often the
answer was there, by predicted probability, and the file's SHA-256, which `app/adapters/rerankers/cross_encoder.py`
names.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnx.utils
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from training.data import Examples
from training.evaluate import Exported
from training.export import INPUTS
from training.train import collate


def fit_logistic(logits: NDArray[np.float64], labels: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and offset of greatest likelihood (Platt, 1999, with his smoothed targets), by Newton's method."""
    positive, negative = labels.sum(), (1 - labels).sum()
    targets = np.where(labels == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))
    x = np.stack([logits, np.ones_like(logits)], axis=1)
    weights = np.array([1.0, 0.0])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (p - targets)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return float(weights[0]), float(weights[1])


def read_held_out(reader: Exported, data: Path, tokenizer: Path, most: int) -> tuple[NDArray[np.float64], ...]:
    examples = Examples(data, Tokenizer.from_file(str(tokenizer)), 11, held_out=True, limit=600).all()
    examples = [example for example in examples if example.answerable >= 0][:most]
    logits = []
    for first in range(0, len(examples), 16):
        batch = collate(examples[first : first + 16])
        with torch.no_grad():
            logits.append(reader(batch["ids"], batch["types"], batch["mask"])[1][:, 0].numpy())
    labels = np.array([example.answerable for example in examples], dtype=np.float64)
    return np.concatenate(logits).astype(np.float64), labels


def write_cross_encoder(reader: Path, out: Path, slope: float, offset: float) -> None:
    """Write the part of `reader` that computes the logit of the answer, times `slope`, plus `offset`."""
    model = onnx.load(str(reader))
    graph = model.graph
    graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([0]), "calibrate_first"),
            numpy_helper.from_array(np.array([slope], dtype=np.float32), "calibrate_slope"),
            numpy_helper.from_array(np.array([offset], dtype=np.float32), "calibrate_offset"),
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Gather", ["pair", "calibrate_first"], ["calibrate_logit"], axis=1),
            helper.make_node("Mul", ["calibrate_logit", "calibrate_slope"], ["calibrate_scaled"]),
            helper.make_node("Add", ["calibrate_scaled", "calibrate_offset"], ["logits"]),
        ]
    )
    graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", 1]))
    onnx.save(onnx.utils.Extractor(model).extract_model(INPUTS, ["logits"]), str(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, default=Path("app/adapters/data/minilm_tokenizer.json"))
    parser.add_argument("--most", type=int, default=2000, help="held-out examples")
    args = parser.parse_args()
    logits, labels = read_held_out(Exported(args.reader), args.data, args.tokenizer, args.most)
    slope, offset = fit_logistic(logits, labels)
    write_cross_encoder(args.reader, args.out, slope, offset)
    print(f"{args.out.stat().st_size / 1e6:.1f} MB, SHA-256 {hashlib.sha256(args.out.read_bytes()).hexdigest()}")
    print(f"{len(labels)} held-out pairs: probability = logistic({slope:.3f} logit {offset:+.3f})")
    predicted = 1 / (1 + np.exp(-(slope * logits + offset)))
    for low in np.arange(0, 1, 0.1):
        inside = (predicted >= low) & (predicted < low + 0.1)
        if inside.any():
            print(f"{low:.1f}  {inside.sum():5d}  {labels[inside].mean():.2f}")


if __name__ == "__main__":
    main()
