"""Fit the projection that shortens token vectors for late interaction (app/adapters/data/token_projection.npy).

    apt-get install wordnet-base && python benchmarks/fit_projection.py

Uncentred principal components of the model's token vectors, which keep dot products best for a given number of
dimensions (Eckart & Young 1936), followed by a random rotation, which spreads length evenly over the dimensions so
that all of them can share one quantiser. Fitted on text that no evaluation set holds: WordNet 3.0 glosses and the
docstrings of Python's standard library. Prints the share of squared length that each size keeps.
"""

import ast
import asyncio
import random
import re
import sysconfig
from pathlib import Path

import numpy as np

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.late_interaction import DIMENSIONS, PROJECTION_PATH

WORDNET = Path("/usr/share/wordnet")
PASSAGE = 450
PASSAGES = {"glosses": 700, "docstrings": 300}


def read_glosses() -> list[str]:
    glosses = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (WORDNET / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if not line.startswith("  "):
                fields, gloss = line.split(" | ", 1)
                glosses.append(f"{fields.split()[4].replace('_', ' ')}: {gloss.strip()}.")
    return glosses


def read_docstrings() -> list[str]:
    docstrings = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = re.sub(r"\s+", " ", ast.get_docstring(node) or "")
                docstrings += [text[i : i + PASSAGE] for i in range(0, len(text), PASSAGE)]
    return docstrings


def build_passages() -> list[str]:
    """A fixed sample, the glosses joined to passages of the length that ingestion makes."""
    chance = random.Random(1)
    glosses = read_glosses()
    chance.shuffle(glosses)
    joined: list[str] = [""]
    for gloss in glosses:
        if len(joined[-1]) + len(gloss) > PASSAGE:
            joined.append("")
        joined[-1] = f"{joined[-1]} {gloss}".strip()
    docstrings = [text for text in read_docstrings() if len(text) > 100]
    chance.shuffle(docstrings)
    return joined[: PASSAGES["glosses"]] + docstrings[: PASSAGES["docstrings"]]


async def main() -> None:
    embedder = OnnxEmbedder.load()
    moment = np.zeros((embedder.dimension, embedder.dimension))
    async for _, _, tokens, _ in embedder.stream_passages(build_passages()):
        moment += tokens.T.astype(np.float64) @ tokens
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1], vectors[:, ::-1]
    for dimensions in (64, 96, 128, 192):
        print(f"{dimensions:4d} dimensions keep {values[:dimensions].sum() / values.sum():.3f}")
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(DIMENSIONS, DIMENSIONS)))
    np.save(PROJECTION_PATH, (vectors[:, :DIMENSIONS] @ rotation).astype(np.float16))


if __name__ == "__main__":
    asyncio.run(main())
