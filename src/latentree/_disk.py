"""Bytes to and from the disk: all or nothing when writing, never too many when reading."""

from __future__ import annotations

from pathlib import Path

from latentree._writing import replacing
from latentree.errors import FileError
from latentree.typing import PathLike

MAX_BYTES = 128 * 2**20
"""Larger files are neither read nor written: reading one must not fill the memory."""

_CHUNK = 2**18


def read_bytes(path: PathLike) -> bytes:
    """Read a file that is not larger than :data:`MAX_BYTES`."""
    data = bytearray()
    with Path(path).open("rb") as file:
        # Not by the size that the system reports: pipes and devices report none.
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > MAX_BYTES:
                limit = MAX_BYTES // 2**20
                raise FileError(f"{path}: is larger than {limit} MB, the most that is read")
    return bytes(data)


def write_bytes(path: PathLike, data: bytes) -> None:
    """Write a file so that its path holds either what it held before, or all of ``data``."""
    if len(data) > MAX_BYTES:
        raise FileError(f"{path}: would be larger than {MAX_BYTES // 2**20} MB, the most allowed")
    with replacing(path) as file:
        file.write(data)
