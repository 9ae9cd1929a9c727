"""The sample library: documents of a team that does not exist, for trying the service out."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Give it to `Ingestion.add_path`."""
