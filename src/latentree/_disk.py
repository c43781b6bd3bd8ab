"""Bytes to and from the disk: all or nothing when writing, never too many when reading."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from latentree.errors import FileError
from latentree.typing import PathLike

MAX_BYTES = 128 * 2**20
"""Larger files are neither read nor written: reading one must not fill the memory."""

_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says, without a name, where a file that is open cannot grow."""

_CHUNK = 2**18
"""Bytes that are read at a time: 256 kB, so that a file that is too large is noticed early."""


def read_bytes(path: PathLike, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file that is not larger than ``max_bytes``."""
    data = bytearray()
    with Path(path).open("rb") as file:
        # Not by the size that the system reports: pipes and devices report none.
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > max_bytes:
                limit = max_bytes // 2**20
                raise FileError(f"{path}: is larger than {limit} MB, the most that is read")
    return bytes(data)


def write_bytes(path: PathLike, data: bytes, max_bytes: int = MAX_BYTES) -> None:
    """Write a file so that its path holds either what it held before, or all of ``data``."""
    if len(data) > max_bytes:
        raise FileError(f"{path}: would be larger than {max_bytes // 2**20} MB, the most allowed")
    with replacing(path) as file:
        file.write(data)


def try_writing(path: PathLike) -> None:
    """Raise what writing a file would raise, before the work for it; the file stays as it is."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        return  # opening a pipe would wait for its reader
    with contextlib.suppress(_Tried), replacing(path) as file:
        file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())
        raise _Tried


class _Tried(Exception):
    """Writing works, and nothing is to take the place of the file."""


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another when all is written.

    Whenever the process ends, the path holds either what it held before or all of the new; the new
    is on the disk before it gets the name. Pipes and devices, which cannot be replaced, are
    written as they are; a folder raises. Errors of the system name the path, never the temporary
    file beside it.
    """
    target = Path(os.path.realpath(path))  # through symbolic links: replace what they point to
    temporary = target.with_name(f".latentree-{secrets.token_hex(8)}.tmp")
    with _errors_naming(path, temporary):
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        try:
            with _created(temporary, target) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    _flush_folder(target.parent)


@contextlib.contextmanager
def _errors_naming(path: PathLike, temporary: Path) -> Iterator[None]:
    """Let errors about a temporary file, or a disk that is full, name the file that is written."""
    try:
        yield
    except OSError as error:
        is_full = error.filename is None and error.errno in _DISK_IS_FULL
        if is_full or error.filename == str(temporary):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _created(path: Path, target: Path) -> BinaryIO:
    """Create a file that never has more permissions than the one whose place it will take."""
    if not target.exists():
        return path.open("xb")
    file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115
    os.chmod(path, stat.S_IMODE(target.stat().st_mode))  # whatever the mask of the process
    return file


def _flush_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):  # Windows and some network disks refuse
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
