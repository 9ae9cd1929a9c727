"""`make bench`: what can be measured with nothing but this repository: a question over the sample library, what a
streamed answer costs beside its language model (a loopback one), what a stored answer costs, what it costs to keep
every step's state, then speed and recall with many chunks beside PGVectorStore (`BENCH_CHUNKS=100000` for the size that
the targets name).

The other modules of this folder measure on data sets that their first lines name.
"""

import asyncio

from app.library import FOLDER
from benchmarks import cached, checkpoints, latency, scale, streaming

asyncio.run(latency.measure([FOLDER]))
streaming.main()
cached.main()
print()
asyncio.run(checkpoints.main())
print()
asyncio.run(scale.main())
