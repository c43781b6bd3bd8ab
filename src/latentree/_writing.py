"""Writing files: all or nothing."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from latentree.typing import PathLike


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another when all is written.

    Whenever the process ends, the path holds either what it held before or all of the new; the new
    is on the disk before it gets the name. Pipes and devices, which cannot be replaced, are
    written as they are; a folder raises.
    """
    target = Path(os.path.realpath(path))  # through symbolic links: replace what they point to
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".latentree-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):  # Windows and some network disks refuse
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
