"""Worker: an object in a fresh process, called from here, with a time limit a call."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.harness.memory import peak_bytes


class TimeLimit(Exception):
    """The call took longer than it was given; its process was ended."""


class Worker:
    """``factory(*arguments)`` made in a fresh process; ``call`` runs its methods there.

    Nothing is shared with other workers: imports, compilation and memory are its own. What a
    process held at most is ``peak()``.
    """

    def __init__(self, factory: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, factory, arguments), daemon=True
        )
        self._process.start()
        there.close()
        self._receive(None)

    def call(self, method: str, *arguments: Any, limit_s: float | None = None) -> Any:
        """Return what the method returns; TimeLimit where it takes longer than ``limit_s``."""
        self._here.send((method, arguments))
        return self._receive(limit_s)

    def peak(self) -> int:
        """Return the peak of resident memory of the process so far, bytes."""
        return int(self.call(""))

    def close(self) -> None:
        """End the process."""
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()
        self._here.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _receive(self, limit_s: float | None) -> Any:
        if not self._here.poll(limit_s):
            self.close()
            raise TimeLimit(f"no answer within {limit_s:.0f} s")
        try:
            succeeded, answer = self._here.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(
                f"the process ended with exit code {self._process.exitcode} (-9: out of memory?)"
            ) from None
        if not succeeded:
            raise RuntimeError(f"in the worker:\n{answer}")
        return answer


def _serve(connection: Connection, factory: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        served = factory(*arguments)
        connection.send((True, None))
        while True:
            method, given = connection.recv()
            answer = getattr(served, method)(*given) if method else peak_bytes()
            connection.send((True, answer))
    except EOFError:
        return
    except BaseException:
        connection.send((False, traceback.format_exc()))
