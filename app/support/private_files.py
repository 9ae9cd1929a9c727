"""Files that only their owner may read."""

import os
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Write the file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)
