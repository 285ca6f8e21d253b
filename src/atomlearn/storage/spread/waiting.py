"""Wait for the workers of a cluster, and report lost workers with a remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

#: Message of the error if a cluster has lost all of its workers.
NO_WORKERS_LEFT = (
    "the cluster had no workers for longer than distributed.scheduler.no-workers-timeout (5 "
    "minutes where that is not set); start some, and solve again: a Checkpoint among the "
    "observers, if there was one, goes on where this ended, on any cluster"
)

#: Type of the result of a call.
Result = TypeVar("Result")


class LostDataError(RuntimeError):
    """Raised if a part of X was lost with its worker, and Dask cannot compute it again."""


def guarded(call: Callable[[], Result]) -> Result:
    """Return ``call()``; turn Dask's errors about lost workers into LostDataError with a remedy.

    ``call`` computes something on the workers. Other errors pass through.
    """
    try:
        return call()
    except Exception as error:
        # Dask raises these errors after it lost data that it cannot compute again. They are
        # compared by name, because ``distributed``, which has their classes, may not be installed.
        name = type(error).__name__
        if name == "NoWorkerError":
            raise LostDataError(NO_WORKERS_LEFT) from error
        if name not in ("KilledWorker", "FutureLostError") and "Cancelled" not in name:
            raise
        text = " ".join(str(error).split())[:500]
        raise LostDataError(
            f"a worker was lost with data of X that Dask could not make again ({name}: {text}). "
            "Make X from files or arrays (dask.array.from_zarr, from_delayed, from_array) rather "
            "than from scattered data, or give the workers more memory; where workers come and "
            "go, let Dask's distributed.scheduler.allowed-failures be more. A Checkpoint among the "
            "observers, if there was one, goes on where this ended, on any cluster"
        ) from error


def current_client() -> Any:
    """Return Dask's current client; None if threads of this process do the work."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    with suppress(ValueError):  # Dask raises it if there is no client.
        return distributed.get_client()
    return None


def awaited(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures, in order; raise LostDataError if no worker is left.

    ``client`` is Dask's client of the cluster. Without the setting ``no-workers-timeout``, Dask
    waits for workers forever. This function waits for workers for the time of this setting, or for
    5 minutes, and checks once a second.
    """
    import dask
    from dask.utils import parse_timedelta
    from distributed import wait

    limit = dask.config.get("distributed.scheduler.no-workers-timeout", None)
    limit = parse_timedelta(limit or "5 minutes")
    seconds_without_workers = 0
    patience = 1.0
    gather = partial(client.gather, futures, asynchronous=True)
    while seconds_without_workers <= limit:
        with suppress(TimeoutError):
            wait(futures, timeout=1.0)
            # A worker may be lost before its results arrive, and Dask may then wait forever. So
            # each attempt has a limit, twice that of the last one.
            patience *= 2.0
            return list(client.sync(gather, callback_timeout=patience))
        seconds_without_workers = 0 if client.nthreads() else seconds_without_workers + 1
    raise LostDataError(NO_WORKERS_LEFT)
