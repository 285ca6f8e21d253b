"""Fingerprint of a problem for checkpoints: all of it except X, and a sample of X."""

from __future__ import annotations

import dataclasses
import inspect
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher

from atomlearn.core.data.parts import dense_part, part_of
from atomlearn.core.interfaces import Array, Loss, Norm
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.problem.problem import Problem

#: Number of columns and rows of X that are compared.
_COLUMNS = 8
_ROWS = 64


def fingerprint(problem: Problem) -> str:
    """Return a hash that identifies ``problem``: all of it except the entries of X.

    It covers targets, weights, loss, norm, form, amount, ridge term, intercept and the shape of X;
    ``sample`` compares some entries.
    """
    regularizer = problem.regularizer
    parts = (
        problem.loss,
        regularizer.norm,
        regularizer.form,
        float(regularizer.amount),
        problem.tau,
        problem.fit_intercept,
        problem.design.shape,
        problem.y,
        problem.weight,
    )
    return str(_Hasher("md5").hash(parts))


def sample(problem: Problem) -> Array:
    """Return up to 64 x 8 entries of X, at evenly spread rows and columns.

    A checkpoint of ``problem`` stores them, so that other data of the same shape is recognized.
    """
    n_samples, n_features = problem.design.shape
    columns = np.unique(np.linspace(0, n_features - 1, _COLUMNS).astype(np.int64))
    rows = np.unique(np.linspace(0, n_samples - 1, _ROWS).astype(np.int64))
    return dense_part(part_of(problem.design, rows=rows), columns)


class _Hasher(NumpyHasher):  # type: ignore[misc]
    """A pickler that hashes objects by their parameters, without caches; functions by code."""

    def reducer_override(self, part: Any) -> Any:
        """Return a type name and the parameters of an object, from which the hash is computed.

        ``part`` is any object inside the hashed problem. The result has the form (tuple, arguments)
        that pickle expects. NotImplemented: the base class pickles the object.
        """
        kind = type(part)
        pieces: Any
        if kind is FunctionType:
            # A function is its code, its default arguments and the variables it captured.
            captured = [cell.cell_contents for cell in part.__closure__ or ()]
            pieces = part.__code__, part.__defaults__, part.__kwdefaults__, captured
        elif kind is CodeType:
            pieces = part.co_code, part.co_names, part.co_consts
        elif kind is frozenset:
            # The order of a set differs between processes.
            pieces = sorted(part, key=repr)
        elif issubclass(kind, Parameters):
            # An object with parameters is equal to another one if its parameters are.
            pieces = sorted(part.get_params(deep=False).items())
        elif issubclass(kind, Loss | Norm) or dataclasses.is_dataclass(kind):
            pieces = _parameters(part)
        else:
            return NotImplemented
        return tuple, ((kind.__qualname__, pieces),)


def _parameters(part: Any) -> list[tuple[str, Any]]:
    """Return names and values of the attributes that define an object, sorted by name.

    These are the parameters of its constructor, or its fields if ``part`` is a dataclass. Other
    attributes may be cached results, which do not identify the object.
    """
    names = set(inspect.signature(type(part)).parameters)
    attributes: dict[str, Any] = {}
    state = part.__getstate__()
    if isinstance(state, list):  # a data class with slots: compare its fields in their order
        names.update(item.name for item in dataclasses.fields(part))
        attributes.update(zip((item.name for item in dataclasses.fields(part)), state, strict=True))
    elif isinstance(state, tuple):  # a class with slots: its dictionary, and its slots
        attributes.update(state[1])
    with suppress(TypeError):  # a class with slots only
        attributes.update(vars(part))
    # An attribute ``_x`` holds the parameter x.
    return [(name, attributes[name]) for name in sorted(attributes) if name.lstrip("_") in names]
