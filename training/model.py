"""The reader: a MiniLM encoder that reads a question and a passage together, with one linear layer of answers.

Per token it says where an answer begins and ends and how well the text around the token answers; per pair it says
whether the passage holds the answer, and whether it supports a claim. It starts from the weights of the embedding model
that ships with askgraph, all-MiniLM-L6-v2 (Apache-2.0), dequantised from its ONNX file.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn

WIDTH, HEADS, LAYERS, INNER, VOCABULARY, POSITIONS = 384, 12, 6, 1536, 30522, 512

TOKEN_ANSWERS = ("begin", "end", "unit")
PAIR_ANSWERS = ("answerable", "supported", "refuted", "unsupported")


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.norm_attended = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up = nn.Linear(WIDTH, INNER)
        self.down = nn.Linear(INNER, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor, dropout: float) -> Tensor:
        """`x` (batch, tokens, width); `mask` (batch, 1, 1, tokens) is added to the attention scores."""
        batch, tokens, _ = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        # Written out, because on a CPU it takes half the time of PyTorch's fused attention at these sizes.
        scores = torch.matmul(qkv[0] * (WIDTH // HEADS) ** -0.5, qkv[1].transpose(-1, -2)) + mask.to(qkv.dtype)
        heads = torch.matmul(torch.softmax(scores, dim=-1, dtype=qkv.dtype), qkv[2])
        heads = heads.transpose(1, 2).reshape(batch, tokens, WIDTH)
        x = self.norm_attended(x + F.dropout(self.attended(heads), dropout, self.training))
        return self.norm(x + F.dropout(self.down(F.gelu(self.up(x))), dropout, self.training))


class Reader(nn.Module):
    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.types = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.token_head = nn.Linear(WIDTH, len(TOKEN_ANSWERS))
        self.pair_inner = nn.Linear(2 * WIDTH, WIDTH)
        self.pair_head = nn.Linear(WIDTH, len(PAIR_ANSWERS))
        self.dropout = dropout
        for head in (self.token_head, self.pair_head):
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of `TOKEN_ANSWERS` (batch, tokens, 3) and of `PAIR_ANSWERS` (batch, 4).

        `ids`, `types` and `mask` are (batch, tokens); `types` is 1 in the passage, `mask` 0 in padding.
        """
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.positions(positions)[None] + self.types(types))
        added = (1.0 - mask.to(x.dtype))[:, None, None, :] * -1e4
        for layer in self.layers:
            x = layer(x, added, self.dropout)
        inside = (types * mask).to(x.dtype)[:, :, None]
        mean = (x * inside).sum(1) / inside.sum(1).clamp(min=1.0)
        pair = torch.tanh(self.pair_inner(torch.cat([x[:, 0], mean], dim=-1)))
        pair = F.dropout(pair, self.dropout, self.training)
        return self.token_head(x), self.pair_head(pair)

    def freeze(self, layers: int) -> None:
        """Keep the embeddings and the lowest `layers` layers as they are."""
        for part in (self.words, self.positions, self.types, self.norm, *self.layers[:layers]):
            part.requires_grad_(False)


def put(parameter: nn.Parameter | Tensor, value: NDArray[np.float32]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.array(value, dtype=np.float32)))


def load_minilm(model: Reader, path: Path) -> None:
    """Fill the encoder of `model` from the int8 ONNX file at `path`; its matrices carry a scale per column."""
    graph = onnx.load(str(path)).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def dequantise(name: str) -> NDArray[np.float32]:
        return tensors[f"{name}_q"].astype(np.float32) * tensors[f"{name}_scale"].astype(np.float32)

    embeddings = "inner.embeddings"
    put(model.words.weight, dequantise(f"{embeddings}.word_embeddings.weight"))
    put(model.positions.weight, dequantise(f"{embeddings}.position_embeddings.weight"))
    put(model.types.weight, tensors[f"{embeddings}.token_type_embeddings.weight"])
    put(model.norm.weight, tensors[f"{embeddings}.LayerNorm.weight"])
    put(model.norm.bias, tensors[f"{embeddings}.LayerNorm.bias"])

    # The exporter named the matrices by number, in the order in which they are used: query, key, value, output, up,
    # down of one layer after the other.
    matrices = [
        tensor.name[:-2]
        for tensor in graph.initializer
        if tensor.name.startswith("val_") and tensor.name.endswith("_q")
    ]
    if len(matrices) != 6 * LAYERS:
        raise ValueError(f"{path} holds {len(matrices)} matrices, not {6 * LAYERS}.")
    for index, layer in enumerate(model.layers):
        query, key, value, attended, up, down = (dequantise(name).T for name in matrices[6 * index : 6 * index + 6])
        at = f"inner.encoder.layer.{index}"
        put(layer.qkv.weight, np.concatenate([query, key, value]))
        put(
            layer.qkv.bias,
            np.concatenate([tensors[f"{at}.attention.self.{part}.bias"] for part in ("query", "key", "value")]),
        )
        put(layer.attended.weight, attended)
        put(layer.attended.bias, tensors[f"{at}.attention.output.dense.bias"])
        put(layer.norm_attended.weight, tensors[f"{at}.attention.output.LayerNorm.weight"])
        put(layer.norm_attended.bias, tensors[f"{at}.attention.output.LayerNorm.bias"])
        put(layer.up.weight, up)
        put(layer.up.bias, tensors[f"{at}.intermediate.dense.bias"])
        put(layer.down.weight, down)
        put(layer.down.bias, tensors[f"{at}.output.dense.bias"])
        put(layer.norm.weight, tensors[f"{at}.output.LayerNorm.weight"])
        put(layer.norm.bias, tensors[f"{at}.output.LayerNorm.bias"])


def load_reader(model: Reader, path: Path) -> None:
    """Fill `model` from the calibrated ONNX file at `path`, whose matrices are 7-bit numbers with a scale per column.
    Of the answers per token, which that file lacks, the model keeps its own."""
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(str(path)).graph.initializer}
    suffix = "_quantized"
    matrices = [
        name.removesuffix(suffix) for name in tensors if name.startswith("onnx::MatMul") and name.endswith(suffix)
    ]
    names = [f"layers.{n}.{part}.weight" for n in range(LAYERS) for part in ("qkv", "attended", "up", "down")]
    stored = dict(zip(names, sorted(matrices, key=lambda name: int(name.split("_")[1])), strict=True)) | {
        name: f"{name}_Transposed" for name in ("pair_inner.weight", "pair_head.weight")
    }
    for name, parameter in model.named_parameters():
        if name.startswith("token_head."):
            continue
        if name in stored:
            put(parameter, (tensors[stored[name] + suffix].astype(np.float32) * tensors[f"{stored[name]}_scale"]).T)
        elif name in tensors:
            put(parameter, tensors[name])
        else:
            put(parameter, tensors[f"{name}_q"].astype(np.float32) * tensors[f"{name}_scale"])


def load_checkpoint(run: Path) -> Reader:
    """The averaged weights of the last checkpoint in the folder `run`, ready to read."""
    model = Reader(0.0)
    model.load_state_dict(torch.load(run / "last.pt", weights_only=True)["average"])
    return model.eval()
