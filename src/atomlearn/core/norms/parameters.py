"""Parameters of a norm: what ``get_params``, ``set_params``, ``repr`` and ``==`` are made of."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Self, TypeVar

import numpy as np

Read = TypeVar("Read")


class Parameters:
    """Constructor arguments kept as plain attributes of the same names, as in scikit-learn.

    ``sklearn.base.clone`` and nested names such as ``norm__k`` work; scikit-learn itself is not
    imported. Two objects are equal where their types and all their parameters are.
    """

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        signature = inspect.signature(cls.__init__)
        return tuple(name for name in signature.parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep``, those of parameters too (``norm__k``)."""
        result: dict[str, Any] = {}
        for name in self._parameter_names() if type(self).__init__ is not object.__init__ else []:
            value = getattr(self, name)
            result[name] = value
            if deep and isinstance(value, Parameters):
                nested = value.get_params().items()
                result.update({f"{name}__{key}": inner for key, inner in nested})
        return result

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name (``k=5``, or ``norm__k=5`` for a parameter's own)."""
        known = self.get_params(deep=False)
        for name, value in parameters.items():
            head, _, tail = name.partition("__")
            if head not in known or (tail and not isinstance(known[head], Parameters)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; "
                    f"it has {sorted(known) or 'none'}"
                )
            if tail:
                getattr(self, head).set_params(**{tail: value})
            else:
                setattr(self, head, value)
                known[head] = value
        return self

    def _read_once(self, n_features: int, read: Callable[[int], Read]) -> Read:
        """Return ``read(n_features)``, kept for as long as no parameter is set to another object.

        Solving many problems with one norm reads its lists of groups once. What is kept goes into
        neither copies nor pickles.
        """
        values = _all_values(self)[1:]
        size, before, result = self.__dict__.get("_read", (None, [], None))
        same = size == n_features and len(before) == len(values)
        if same and all(old is new for old, new in zip(before, values, strict=True)):
            kept: Read = result
            return kept
        made = read(n_features)
        self.__dict__["_read"] = (n_features, values, made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_read"}

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items()
        )
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Parameters)
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)


def _all_values(parameter: Any) -> list[Any]:
    """Return a parameter with all that it consists of, norms within norms included."""
    inside: Any = ()
    if isinstance(parameter, Parameters):
        inside = parameter.get_params(deep=False).values()
    elif isinstance(parameter, list | tuple) and any(isinstance(p, Parameters) for p in parameter):
        inside = parameter
    return [parameter, *(value for part in inside for value in _all_values(part))]


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(np.asarray(left), np.asarray(right))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    try:
        return left is right or bool(left == right)
    except ValueError:  # arrays of some kind, which are equal by their entries
        return False


def amount_of_prox(owner: str, name: str, value: float) -> float:
    """Return a step or a radius as a float >= 0, or raise with the remedy."""
    amount = float(value)
    if not (math.isfinite(amount) and amount >= 0):
        raise ValueError(
            f"{owner}: {name} must be finite and at least 0, got {value!r}; "
            "check the step size or level that produced it"
        )
    return amount
