"""The binary form of tapes: msgpack, with an extension for arrays."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import ormsgpack

_ARRAY = 1
"""The msgpack extension type of an array: its dtype and shape, then its values."""


def pack(value: Any) -> bytes:
    """Encode plain values, dataclasses and arrays. Equal values have equal bytes."""
    return ormsgpack.packb(value, default=_pack_array)


def unpack(data: bytes) -> Any:
    """Decode what was packed; dataclasses come back as dictionaries, tuples as lists."""
    return ormsgpack.unpackb(data, ext_hook=_unpack_array)


def show_request(request: Mapping[str, Any]) -> list[str]:
    """Format a request for people, line by line; arrays as their shape and a digest."""
    plain = ormsgpack.unpackb(pack(request), ext_hook=_name_array)
    return [line for part in json.dumps(plain, ensure_ascii=False, indent=1).splitlines() for line in part.split("\\n")]


def _name_array(tag: int, data: bytes) -> str:
    return f"{_unpack_array(tag, data).shape} {hashlib.sha256(data).hexdigest()[:12]}"


def _pack_array(value: Any) -> ormsgpack.Ext:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a tape cannot hold a {type(value).__name__}")
    header = ormsgpack.packb([value.dtype.str, value.shape])
    return ormsgpack.Ext(_ARRAY, b"".join([bytes([len(header)]), header, value.tobytes()]))


def _unpack_array(tag: int, data: bytes) -> np.ndarray[Any, Any]:
    start = 1 + data[0]
    dtype, shape = ormsgpack.unpackb(data[1:start])
    # A copy, because results of computing with unaligned values may differ in the last bit.
    return np.frombuffer(data, dtype, offset=start).reshape(shape).copy()
