"""The sample library: documents of a team that does not exist, for trying the service out.

The PDF and the Word file are made by ``python tests/ingest/sample_library.py``.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Give it to `Ingestion.add_paths`."""
