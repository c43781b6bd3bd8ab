"""A pool of threads for kernels that run without the interpreter lock.

The number of parts never depends on the number of threads, and results come back in order, so
that sums over parts are the same on every machine.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from functools import cache
from itertools import pairwise
from typing import TypeVar

from threadpoolctl import LibController, ThreadpoolController

from latentree._kernels import compiling

Item = TypeVar("Item")
Result = TypeVar("Result")

_is_worker: ContextVar[bool] = ContextVar("latentree_worker", default=False)


def n_threads() -> int:
    """Threads to use: ``LATENTREE_NUM_THREADS``, or the processors this process may run on.

    Fewer where OpenMP is limited: joblib does so in its processes, threadpoolctl where it is asked.
    """
    wanted = os.environ.get("LATENTREE_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    has_affinity = hasattr(os, "sched_getaffinity")
    limits = [len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1]
    limits += [int(library.num_threads) for library in _openmp("sklearn" in sys.modules)]
    named = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min([*limits, int(named)] if named.isdigit() and int(named) > 0 else limits)


@cache
def _openmp(has_sklearn: bool) -> list[LibController]:
    """Return the OpenMP libraries of this process; scikit-learn brings one."""
    return ThreadpoolController().select(user_api="openmp").lib_controllers  # type: ignore[no-any-return]


@cache
def _pool(size: int, process: int) -> ThreadPoolExecutor:
    """Return the threads of this process, which wait for work between two calls."""
    # Keyed by the process too: a pool inherited through fork has no live threads.
    return ThreadPoolExecutor(size, thread_name_prefix=f"latentree-{process}")


def run(function: Callable[[Item], Result], parts: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to every part, on the pool when there is more than one; in order.

    Kernels run as they do in the calling thread. Where they are not compiled, threads would only
    wait for each other. Within a part nothing is spread again: all threads have a part already.
    """
    parts = list(parts)
    if len(parts) < 2 or compiling.is_interpreted() or _is_worker.get() or n_threads() == 1:
        return [function(part) for part in parts]
    pool = _pool(n_threads(), os.getpid())
    return [
        future.result()
        for future in [pool.submit(_worker_context().run, function, part) for part in parts]
    ]


def each(function: Callable[[Item], Result], parts: Iterable[Item]) -> Iterator[Result]:
    """Yield the results of all parts in order, as they are done; few parts are begun ahead.

    What is not begun when the caller stops is never begun.
    """
    threads = n_threads()
    if threads == 1 or _is_worker.get():
        yield from map(function, parts)
        return
    pool = _pool(threads, os.getpid())
    waiting: deque[Future[Result]] = deque()
    remaining = iter(parts)
    try:
        for part in remaining:
            waiting.append(pool.submit(_worker_context().run, function, part))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _worker_context() -> Context:
    """Return a copy of this context, in which nothing is spread over threads."""
    context = copy_context()
    context.run(_is_worker.set, True)
    return context


def split(n_items: int, n_parts: int) -> list[tuple[int, int]]:
    """Cut ``range(n_items)`` into at most ``n_parts`` nearly equal, non-empty ranges."""
    n_parts = max(1, min(n_parts, n_items))
    cuts = [n_items * part // n_parts for part in range(n_parts + 1)]
    return [(start, stop) for start, stop in pairwise(cuts) if stop > start]
