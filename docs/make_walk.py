"""Write the walk of one fit, ``docs/contribute/walk.md``, as the calls of a real run."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

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
    """Collects calls of functions of latentree, once per caller that is shown."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.seen: set[tuple[str, ...]] = set()
        self.path: list[tuple[str, tuple[str, ...]]] = []  # each call, and the shown ones above it

    def watch(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; a profile function of :func:`sys.setprofile`."""
        if event not in ("call", "return"):
            return
        name = function_of(frame)
        if name is None:
            return
        if event == "return":
            if self.path and self.path[-1][0] == name:
                self.path.pop()
            return
        caller, shown = self.path[-1] if self.path else ("", ())
        if len(shown) < DEEPEST or enters_package(name, caller):
            shown = (*shown, name)
            if shown not in self.seen:
                self.seen.add(shown)
                self.lines.append((len(shown) - 1, name))
        self.path.append((name, shown))


def enters_package(name: str, caller: str) -> bool:
    """Whether a function is a public one of another package than its caller."""
    package, function = name.split(": ")
    return not caller.startswith(package) and "_" not in (package[0], function.split(".")[-1][0])


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
