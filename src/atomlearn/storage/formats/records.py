"""Read JSON objects into dataclasses, with strict checks of the annotated types.

A ``bool`` does not count as an ``int``; numbers have to be finite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

#: Types of JSON values, as error messages call them.
_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number of at least 0",
    float: "a finite number",
    list: "a list",
    dict: "an object",
}
#: The origin of an annotated array type: ndarray, or the alias NDArray from NumPy 2.5 on.
_ARRAY = get_origin(NDArray[np.float64])
#: Special readers ``(place, value) -> value``, by the annotation of the fields they apply to.
Readers = Mapping[Any, Callable[[str, Any], Any]]


def record(kind: Any, value: object, place: str = "", own: Readers = MappingProxyType({})) -> Any:
    """Return a dataclass from a JSON object with exactly its fields.

    Parameters
    ----------
    kind : dataclass
        The class to make.
    value : dict
        The JSON object.
    place : str
        Where ``value`` is in the file ("" at the top), for errors such as "model.weights[2] must be
        ...".
    own : mapping
        Special readers of the caller, by the annotation of the fields they apply to.
    """
    hints = get_type_hints(kind)
    fields = of_type(place or "the file", value, dict)
    expected = f"an object with the keys {', '.join(hints)}"
    demand(fields.keys() == hints.keys(), place or "the file", expected, sorted(fields))
    prefix = f"{place}." if place else ""
    return kind(**{key: _value(f"{prefix}{key}", fields[key], hints[key], own) for key in hints})


def _value(place: str, value: object, kind: Any, own: Readers) -> Any:
    """Return a JSON value converted to the annotated type ``kind``, for example tuple[int, ...].

    ``place`` and ``own`` are those of ``record``. ValueError with the place if it does not fit.
    """
    # Of tuple[int, ...] the origin is tuple, and ``kinds`` are the types in brackets.
    origin = get_origin(kind)
    kinds = get_args(kind)
    if kind in own:
        return own[kind](place, value)
    if origin is _ARRAY:
        return finite_array(place, value)
    if is_dataclass(kind):
        return record(kind, value, place, own)
    if origin is tuple:
        items = enumerate(of_type(place, value, list))
        return tuple(_value(f"{place}[{number}]", item, kinds[0], own) for number, item in items)
    if origin is dict:
        entries = of_type(place, value, dict).items()
        return {key: _value(f"{place}.{key}", item, kinds[1], own) for key, item in entries}
    if type(None) in kinds and value is None:
        return None
    # A plain type, or a union such as ``str | None``, from which None is taken out here.
    kinds = tuple(type_ for type_ in kinds if type_ is not type(None)) or (kind,)
    if len(kinds) == 1:
        if kinds[0] is not kind:
            return _value(place, value, kinds[0], own)
        return finite_number(place, value) if kind is float else of_type(place, value, kind)
    # JSON writes a float such as 1.0 as the integer 1.
    expected = f"one of {', '.join(_WORDS[type_] for type_ in kinds)}"
    fits = type(value) in kinds or (float in kinds and type(value) is int)
    demand(fits, place, expected, value)
    return value


def demand(holds: bool, place: str, expected: str, received: object) -> None:
    """Raise ValueError "PLACE must be EXPECTED, found RECEIVED" unless ``holds`` is True.

    ``place`` and ``expected`` are texts; ``received`` is the value, of which up to 60 characters
    are shown.
    """
    if not holds:
        value = repr(received)
        value = value if len(value) <= 60 else value[:57] + "..."
        raise ValueError(f"{place} must be {expected}, found {value}")


def of_type(place: str, value: Any, kind: Any) -> Any:
    """Return the value if it has exactly the type ``kind``; an int must be at least 0.

    Else ValueError names the place.
    """
    fits = type(value) is kind and not (kind is int and value < 0)
    demand(fits, place, _WORDS[kind], value)
    return value


def finite_number(place: str, value: Any) -> float:
    """Return ``value`` as a float if it is a finite number; else ValueError names ``place``."""
    # An int may be larger than any float.
    holds = type(value) in (int, float) and abs(value) <= sys.float_info.max
    demand(holds, place, _WORDS[float], value)
    return float(value)


def finite_array(place: str, value: object) -> NDArray[np.float64]:
    """Return ``value``, nested lists of finite numbers, as an array.

    ValueError names ``place`` if it is anything else.
    """
    expected = "lists of finite numbers, of one length"
    try:
        array = np.array(of_type(place, value, list))
    except ValueError:
        array = np.array(None)
    demand(array.dtype.kind in "if" and bool(np.isfinite(array).all()), place, expected, value)
    return array.astype(np.float64)
