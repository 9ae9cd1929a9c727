"""Write a checkpoint as an ONNX file with int8 weights: `python -m training.export --run FOLDER --out reader.onnx`.

Matrices are quantised for dynamic int8 arithmetic, one scale per column; the embeddings are stored as int8, one scale
per row. Prints the file's size, its SHA-256 and how far its logits are from the checkpoint's.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from training.model import Reader, load_checkpoint

INPUTS = ["input_ids", "token_type_ids", "attention_mask"]
OUTPUTS = ["tokens", "pair"]


def export(model: Reader, path: Path, *, portable: bool = False) -> None:
    """Write `model` to `path`, quantised; `portable`: to 7 bits, whose products no processor cuts off."""
    model.eval()
    ids = torch.ones(2, 16, dtype=torch.long)
    whole = path.with_suffix(".float.onnx")
    axes = {0: "pairs", 1: "tokens"}
    torch.onnx.export(
        model,
        (ids, ids, ids),
        str(whole),
        input_names=INPUTS,
        output_names=OUTPUTS,
        opset_version=17,
        dynamo=False,
        dynamic_axes=dict.fromkeys(INPUTS, axes) | {"tokens": axes, "pair": {0: "pairs"}},
    )
    quantize_dynamic(
        whole,
        path,
        per_channel=True,
        reduce_range=portable,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul"],
    )
    whole.unlink()
    _store_embeddings(path)


def _store_embeddings(path: Path) -> None:
    """Replace the large float tables that rows are gathered from by int8 rows and their scales."""
    model = onnx.load(str(path))
    graph = model.graph
    tables = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
    for node in [node for node in graph.node if node.op_type == "Gather" and node.input[0] in tables]:
        table = tables[node.input[0]]
        if table.dims[0] < 100:
            continue
        rows = numpy_helper.to_array(table)
        scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9) / 127
        name = table.name
        graph.initializer.remove(table)
        graph.initializer.append(numpy_helper.from_array(np.round(rows / scale).astype(np.int8), f"{name}_q"))
        graph.initializer.append(numpy_helper.from_array(scale.astype(np.float32), f"{name}_scale"))
        at = list(graph.node).index(node)
        index, out = node.input[1], node.output[0]
        graph.node.remove(node)
        made = [
            helper.make_node("Gather", [f"{name}_q", index], [f"{out}_q"]),
            helper.make_node("Cast", [f"{out}_q"], [f"{out}_f"], to=TensorProto.FLOAT),
            helper.make_node("Gather", [f"{name}_scale", index], [f"{out}_s"]),
            helper.make_node("Mul", [f"{out}_f", f"{out}_s"], [out]),
        ]
        for by, new in enumerate(made):
            graph.node.insert(at + by, new)
    onnx.save(model, str(path))


def difference(model: Reader, path: Path) -> tuple[float, float]:
    """The mean absolute difference of the token and pair logits between `model` and the file, on random words."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, 20000, (4, 96), generator=generator)
    types = (torch.arange(96)[None] > 12).long().repeat(4, 1)
    mask = torch.ones_like(ids)
    mask[0, 70:] = 0
    with torch.no_grad():
        wanted = model(ids, types, mask)
    feed = dict(zip(INPUTS, (ids.numpy(), types.numpy(), mask.numpy()), strict=True))
    got = session.run(OUTPUTS, feed)
    kept = mask.bool().numpy()
    tokens = float(np.abs(got[0] - wanted[0].numpy())[kept].mean())
    return tokens, float(np.abs(got[1] - wanted[1].numpy()).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--portable", action="store_true", help="7-bit weights, for processors without VNNI")
    args = parser.parse_args()
    model = load_checkpoint(args.run)
    export(model, args.out, portable=args.portable)
    data = args.out.read_bytes()
    print(f"{len(data) / 1e6:.1f} MB, SHA-256 {hashlib.sha256(data).hexdigest()}")
    print("mean difference of logits (tokens, pair):", difference(model, args.out))


if __name__ == "__main__":
    main()
