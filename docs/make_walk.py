"""Write the walk of one fit, ``docs/contribute/walk.md``, as the calls of a real run."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import latentree as lt

PAGE = Path(__file__).parent / "contribute" / "walk.md"
SOURCE = Path(lt.__file__).parent
DEEPEST = 5
FEWEST_LINES = 2

HEAD = """\
# The walk of one fit

What happens in `lt.LatentTree("clnj", random_state=0).fit(X)` on the nine bundled tests: which
function calls which, in order. This page is made from a run by `python docs/make_walk.py`. Repeated
calls stand once, helpers below the fifth level are left out, and so are properties, checks of types
and lazy imports.

Read it from the left: the estimator takes the data, `data` checks and codes it, `distances` sums
over rows and computes distances, `structure` learns a tree, `em` fits the parameters, and `methods`
puts the report together.

"""


class Walk:
    """Collects calls of functions of latentree, once per caller."""

    def __init__(self) -> None:
        self.depth = 0
        self.lines: list[tuple[int, str]] = []
        self.seen: set[tuple[Any, ...]] = set()
        self.path: list[str] = []

    def watch(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; a profile function of :func:`sys.setprofile`."""
        if event not in ("call", "return"):
            return
        name = function_of(frame)
        if name is None:
            return
        if event == "return":
            if self.path and self.path[-1] == name:
                self.path.pop()
            return
        here = (*self.path, name)
        if here not in self.seen and len(here) <= DEEPEST:
            self.seen.add(here)
            self.lines.append((len(self.path), name))
        self.path.append(name)


def function_of(frame: FrameType) -> str | None:
    """Package and name of a function of latentree, None for others and for small helpers."""
    code = frame.f_code
    file = Path(code.co_filename)
    if SOURCE not in file.parents or "<" in code.co_qualname or "__" in code.co_qualname:
        return None
    if len({line for *_, line in code.co_lines() if line}) <= FEWEST_LINES:
        return None
    package = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    if package in ("errors", "typing", "_lazy"):
        return None
    return f"{package}: {code.co_qualname}"


def lines() -> Iterator[str]:
    """The calls as an indented list."""
    X = lt.datasets.load_holzinger().to_frame()
    lt.LatentTree("clnj", random_state=0).fit(X)  # what is done once in a process is done now
    walk = Walk()
    sys.setprofile(walk.watch)
    try:
        lt.LatentTree("clnj", random_state=0).fit(X)
    finally:
        sys.setprofile(None)
    for depth, name in walk.lines:
        yield f"{'  ' * depth}{name}"


if __name__ == "__main__":
    PAGE.write_text(HEAD + "```console\n" + "\n".join(lines()) + "\n```\n", "utf-8")
