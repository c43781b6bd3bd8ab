"""How much memory there is, and errors before an allocation that would not fit.

The environment variable ``LATENTREE_MEMORY`` (bytes, or like ``8GB`` or ``2.5 GiB``) says how
much may be used. Without it that is what the system has left, or the container it runs in.
"""

from __future__ import annotations

import os
import re
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from latentree.errors import MemoryBudgetError

VARIABLE = "LATENTREE_MEMORY"

# Units as people write them: powers of 1,000, and those with an i of 1,024.
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


class System(NamedTuple):
    """Where Linux tells how much memory there is."""

    meminfo: Path = Path("/proc/meminfo")
    own_groups: Path = Path("/proc/self/cgroup")
    groups: Path = Path("/sys/fs/cgroup")


def available(system: System = System()) -> int:  # noqa: B008 - immutable
    """Return the bytes that may still be allocated: what was set, or what is left."""
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted:
        return parse_size(wanted)
    return _left(system, int(time.monotonic()))


@lru_cache(maxsize=1)
def _left(system: System, second: int) -> int:
    """Ask the system, at most once a second: its files take longer to read than a step of EM."""
    left = (_left_in_system(system), _left_in_container(system))
    return min((size for size in left if size is not None), default=2**62)


def parse_size(text: str) -> int:
    """Read a size such as ``8GB``, ``1.5 GiB`` or a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS:
        raise MemoryBudgetError(
            f"{VARIABLE} is {text!r}, but must be a size such as 8GB, 500MB or a number of bytes"
        )
    return int(float(match[1]) * _UNITS[match[2].lower()])


def format_size(n_bytes: float) -> str:
    """Write a number of bytes with a unit: ``3.2 GB``."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= 0.995 * size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"


def fits(n_bytes: float, share: float = 1.0) -> bool:
    """Whether so much fits into that share of what is available."""
    return n_bytes <= share * available()


def require(n_bytes: float, what: str, instead: str) -> None:
    """Raise when an allocation does not fit.

    Parameters
    ----------
    n_bytes : float
        Estimate of the bytes needed at the same time.
    what : str
        What needs them, as the subject of a sentence.
    instead : str
        What to do instead.
    """
    left = available()
    if n_bytes > left:
        raise MemoryBudgetError(
            f"{what} would need {format_size(n_bytes)}, but {format_size(left)} are available: "
            f"{instead} (or set {VARIABLE} if there is more)"
        )


def _left_in_system(system: System) -> int | None:
    try:
        for line in system.meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_container(system: System) -> int | None:
    """Bytes that the control groups of this process leave; None if they set no limit."""
    found = [_left_in_group(group) for group in _own_groups(system)]
    return min((size for size in found if size is not None), default=None)


def _own_groups(system: System) -> list[Path]:
    """Folders of the control groups that this process is in, of either version."""
    try:
        lines = system.own_groups.read_text().splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            inner = system.groups / controllers / path.lstrip("/")
            folders += [inner, *inner.parents]
    return [folder for folder in dict.fromkeys(folders) if folder.is_relative_to(system.groups)]


def _left_in_group(folder: Path) -> int | None:
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            most, now = int((folder / limit).read_text()), int((folder / used).read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if most < 2**60:
            return max(most - max(now - _cached_files(folder), 0), 0)
    return None


def _cached_files(folder: Path) -> int:
    """Bytes of files in the cache, which the system gives back when memory is asked for."""
    try:
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0))
