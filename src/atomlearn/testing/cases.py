"""each: one test that is run for several values of one of its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test for each value of an argument.

    ``name`` is the argument; several names ("rows, message") take tuples. If the test fails, a note
    names the value. It is like ``pytest.mark.parametrize``, but one test: for seeds and other
    values that are many and alike. Fixtures are shared by all values.
    """
    names = name.split(", ")
    cases = list(values)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        """Return ``test`` as a function without the arguments ``names``."""

        @functools.wraps(test)
        def all_cases(*args: Any, **others: Any) -> None:
            """Call the test once for each case."""
            for value in cases:
                arguments = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(*args, **arguments, **others)
                except Exception as error:
                    error.add_note(f"in the case {name} = {value!r}")
                    raise

        # Hide these arguments from pytest, which would look for fixtures of their names.
        signature = inspect.signature(test)
        parameters = [part for part in signature.parameters.values() if part.name not in names]
        all_cases.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return all_cases

    return decorated
