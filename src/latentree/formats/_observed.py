"""Which nodes of a file are observed, for the formats that are read."""

from __future__ import annotations

from collections.abc import Sequence

from latentree.errors import FileError


def places_of(observed: Sequence[str], names: Sequence[str | None], kind: str) -> list[int]:
    """Return the places of the observed nodes among all names, in the order wanted."""
    place = {name: index for index, name in enumerate(names) if name is not None}
    for name in observed:
        if name not in place:
            unquoted = kind == "Newick" and "_" in name
            hint = " (an underscore outside quotes is a space)" if unquoted else ""
            raise FileError(f"no node of the {kind} text is called {name!r}{hint}")
    if len(set(observed)) < len(observed):
        raise FileError("observed lists a name twice")
    return [place[name] for name in observed]


def observed_first(places: Sequence[int], n_nodes: int) -> list[int]:
    """Return the places of all nodes: those given, then the others."""
    seen = set(places)
    return [*places, *(place for place in range(n_nodes) if place not in seen)]
