"""`make bench`: what can be measured with nothing but the sample library. The other modules of this folder measure on
data sets that their first lines name."""

import asyncio

from app.library import FOLDER
from benchmarks.latency import measure

asyncio.run(measure([FOLDER]))
