"""Bytes to and from the disk: all or nothing when writing, never too many when reading."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from latentree.errors import FileError

PathLike = str | os.PathLike[str]

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
    target = Path(os.path.realpath(path))  # through symbolic links: replace what they point to
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a pipe or a device cannot be replaced; a folder raises
        return
    temporary = target.with_name(f".latentree-{secrets.token_hex(8)}.tmp")
    try:
        _write_through(temporary, data)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _flush_folder(target.parent)


def _write_through(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):  # Windows and some network disks refuse
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
