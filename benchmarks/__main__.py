"""Runs the benchmarks that need nothing but this repository (`make bench`).

They measure the embedding model beside the graph of its package, a question over the sample library, the cost of
streaming an answer besides its language model (a loopback one), the cost of a cached answer, the cost of saving every
step's state, and speed and recall with many chunks beside PGVectorStore (`BENCH_CHUNKS=100000` for the size that the
targets name).

The other modules of this folder need data sets, which their docstrings name.
"""

import asyncio

from app.samples import FOLDER
from benchmarks import cached, checkpoints, embedding, latency, scale, streaming

embedding.main()
asyncio.run(latency.measure([FOLDER]))
streaming.main()
cached.main()
print()
asyncio.run(checkpoints.main())
print()
asyncio.run(scale.main())
