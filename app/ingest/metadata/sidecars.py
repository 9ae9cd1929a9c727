"""What is known of a file from beside it: its sidecar, `report.pdf.meta.json` for `report.pdf`."""

import errno
import json
from pathlib import Path

from app.ingest.opening import open_file, resolve
from domain.errors import MetadataError
from domain.library.metadata import Metadata, check_metadata

SUFFIX = ".meta.json"
MAX_BYTES = 65_536


def is_sidecar(name: str) -> bool:
    """Return True for the name of a file that holds another one's metadata."""
    return name.endswith(SUFFIX) and name != SUFFIX


def read_sidecar(path: Path) -> Metadata:
    """Return the metadata in the sidecar of the file at `path`. Raises `MetadataError`."""
    sidecar = path.with_name(path.name + SUFFIX)
    try:
        whole = resolve(sidecar)
        if not whole.is_relative_to(resolve(path.parent)):
            raise MetadataError(f"{sidecar.name} is a link that leads out of its folder.")
        with open_file(whole) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        # There can be none beside a name of 246 bytes or more.
        if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
            return {}
        raise MetadataError(f"{sidecar.name} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise MetadataError(f"{sidecar.name} is larger than {MAX_BYTES:,} bytes.")
    return read_metadata(data, sidecar.name)


def read_metadata(data: str | bytes, name: str) -> Metadata:
    """Read metadata written as a JSON object. Raises `MetadataError`, which names `name`."""
    try:
        return check_metadata(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"{name} is not JSON.") from error
    except MetadataError as error:
        raise MetadataError(f"{name}: {error.message}") from error
