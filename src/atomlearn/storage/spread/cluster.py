"""Cluster: tasks where the chunks of a Dask collection lie, and what was lost with a worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from atomlearn.core.interfaces import Columns
from atomlearn.storage.spread import chunks as pieces

#: Sums and lists are put together from so many at a time.
FAN_IN = 8

Tasks = dict[Any, Any]
Result = TypeVar("Result")


class LostDataError(RuntimeError):
    """A part of X is gone with its worker, and Dask does not know how to make it again."""


class Cluster:
    """The scheduler that runs tasks: a Client's, or Dask's current one."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __getstate__(self) -> dict[str, Any]:
        # A connection does not travel; where a copy arrives, the current scheduler is asked.
        return {"client": None}

    def chunks(self, grid: pieces.Grid) -> list[Any]:
        """Return one Delayed a chunk, which makes and checks it; row by row."""
        name = named("chunk")
        tasks: Tasks = {}
        for i, row in enumerate(parts_of(grid.rows)):
            for j, column in enumerate(parts_of(grid.columns)):
                shape = (row.stop - row.start, column.stop - column.start)
                source = grid.chunks[i, j].key
                made = (pieces.hold, source, grid.dtype, shape, row.start, column.start)
                tasks[(name, row.start, column.start)] = made
        return self._delayed(tasks, list(tasks), list(grid.chunks.ravel()))

    def compute(self, tasks: Tasks, ends: Sequence[Any], held: list[Any]) -> list[Any]:
        """Return the results at the keys ``ends``; ``held`` : what the tasks are made of."""
        wanted = self._delayed(tasks, ends, held)
        if not wanted:
            return []

        def call() -> list[Any]:
            if self.client is not None:
                return list(self.client.compute(wanted, sync=True))
            import dask

            return list(dask.compute(*wanted))

        return self.guard(call, held)

    def keep(self, tasks: Tasks, ends: Sequence[Any], held: list[Any]) -> list[Any]:
        """Start the tasks and leave the results at ``ends`` on the workers."""
        return self.guard(lambda: self.persist(self._delayed(tasks, ends, held)), held)

    def persist(self, wanted: list[Any]) -> list[Any]:
        """Return the same Delayed objects, whose results stay where they are made."""
        if self.client is not None:
            return list(self.client.persist(wanted))
        import dask

        return list(dask.persist(*wanted))

    def guard(self, call: Callable[[], Result], held: list[Any] | None) -> Result:
        """Call, and say what was lost where Dask gives up."""
        try:
            return call()
        except Exception as error:
            # What Dask raises where a worker took something with it that cannot be made again.
            losses = "KilledWorker", "FutureCancelledError", "CancelledError", "FutureLostError"
            if type(error).__name__ not in losses:
                raise
            raise LostDataError(_what_was_lost(error, held)) from error

    @staticmethod
    def _delayed(tasks: Tasks, ends: Sequence[Any], held: list[Any]) -> list[Any]:
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        # Each Delayed has the graph of all of them where they came from one call of ours.
        if not tasks:
            by_key = {part.key: part for part in held}
            return [by_key[key] for key in ends]
        name = named("atomlearn")
        graph = HighLevelGraph.from_collections(name, tasks, dependencies=held)
        return [Delayed(key, graph, layer=name) for key in ends]


def tree(
    tasks: Tasks, name: str, place: tuple[int, ...], keys: list[Any], join: Any, *more: Any
) -> Any:
    """Add tasks that join the results at ``keys``, some at a time; return the key of all.

    One key needs no joining.
    """
    level = 0
    while len(keys) > 1:
        groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
        keys = []
        for number, group in enumerate(groups):
            key = (name, *place, level, number)
            tasks[key] = (join, group, *more)
            keys.append(key)
        level += 1
    return keys[0]


def named(what: str) -> str:
    """Return a name of its own, which dashboards show as ``what``."""
    return f"{what}-{uuid.uuid4().hex}"


def parts_of(ends: Columns) -> list[slice]:
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def _what_was_lost(error: Exception, held: list[Any] | None) -> str:
    """Return which chunks an error of Dask is about, why, and what to do."""
    text = str(error)
    lost: list[Any] = []
    for _ in range(20):
        lost = [part.key for part in held or [] if _is_lost(part) or str(part.key) in text]
        if lost or not held:
            break
        # The news of each chunk comes by itself, a moment after the error.
        time.sleep(0.1)
    where = ", ".join(f"the chunk at row {key[-2]}, column {key[-1]}" for key in lost[:5])
    more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
    return (
        f"a worker was lost, and with it {where or 'data of X'}{more}, which Dask could not make "
        f"again ({type(error).__name__}: {text[:500]}). Make X from files or arrays "
        "(dask.array.from_zarr, from_delayed, from_array) rather than from scattered data, or give "
        "the workers more memory; where workers come and go, let Dask's "
        "distributed.scheduler.allowed-failures be more"
    )


def _is_lost(part: Any) -> bool:
    """Return whether a chunk was kept by a worker and is there no more."""
    future = dict(part.dask).get(part.key)
    return getattr(future, "status", None) in ("cancelled", "lost", "error")
