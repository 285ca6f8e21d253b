"""Parameters of a norm, from which ``get_params``, ``set_params``, ``repr`` and ``==`` follow."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Self

import numpy as np


class Parameters:
    """Constructor arguments kept as plain attributes of the same names, as in scikit-learn.

    ``sklearn.base.clone`` and nested names such as ``norm__k`` work; scikit-learn itself is not
    imported. Two objects are equal if their types and all their parameters are
    equal.
    """

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the constructor's parameters."""
        signature = inspect.signature(cls.__init__)
        return tuple(name for name in signature.parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep``, also those of parameters (``norm__k``)."""
        result: dict[str, Any] = {}
        # A class without a constructor has no parameters.
        for name in self._parameter_names() if type(self).__init__ is not object.__init__ else []:
            value = getattr(self, name)
            result[name] = value
            if deep and isinstance(value, Parameters):
                nested = value.get_params().items()
                result.update({f"{name}__{key}": inner for key, inner in nested})
        return result

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, such as ``k=5``, or ``norm__k=5`` for a nested one."""
        current = self.get_params(deep=False)
        for name, value in parameters.items():
            # "norm__k" is the parameter k of the parameter norm.
            head, _, tail = name.partition("__")
            if head not in current or (tail and not isinstance(current[head], Parameters)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; "
                    f"it has {sorted(current) or 'none'}"
                )
            if tail:
                getattr(self, head).set_params(**{tail: value})
            else:
                setattr(self, head, value)
                current[head] = value
        return self

    def replaced(self, **changes: Any) -> Self:
        """Return a new object with other values, ``changes``, of some parameters."""
        return type(self)(**{**self.get_params(deep=False), **changes})

    def __repr__(self) -> str:
        """Return the call that makes the object, without parameters that are None."""
        parameters = self.get_params(deep=False).items()
        inner = [f"{name}={value!r}" for name, value in parameters if value is not None]
        return f"{type(self).__name__}({', '.join(inner)})"

    def __eq__(self, other: Any) -> bool:
        """Return whether the types and all parameters are equal."""
        if type(self) is not type(other):
            return NotImplemented
        own_parameters = self.get_params(deep=False)
        other_parameters = other.get_params(deep=False)
        return all(
            _are_equal(own_parameters[name], other_parameters[name]) for name in own_parameters
        )


def _are_equal(left: Any, right: Any) -> bool:
    """Return whether two values, ``left`` and ``right``, of a parameter are equal.

    Arrays and lists are compared by their entries.
    """
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(np.asarray(left), np.asarray(right))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    try:
        return left is right or bool(left == right)
    except ValueError:  # array-like values, which are compared by their entries
        return False
