"""Make command line options from the fields of a dataclass.

The names, types and defaults come from the fields; the help texts come from the docstring of the
class.
"""

from __future__ import annotations

import argparse
import inspect
import math
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints


class CommandError(ValueError):
    """An error in the options or the data; the message names the remedy."""


_DESCRIBED = re.compile(r"^(\w+) : (\w+).*\n((?:    .*\n|\n)+)", re.MULTILINE)
#: Maps a type to its placeholder in the help; other words, such as file, are kept as they are.
_SHOWN = {"str": "NAME", "int": "NUMBER", "float": "NUMBER"}


@dataclass(frozen=True, slots=True)
class Value:
    """A converter from the text of an option to its value, as the argparse ``type``.

    ``kind`` converts the text, ``holds`` checks the value, and ``expected`` describes valid values
    in the error message.
    """

    kind: Callable[[str], Any]
    expected: str
    holds: Callable[[Any], bool]

    def __call__(self, text: str) -> Any:
        """Return the value of the text, or raise ArgumentTypeError if it is not valid."""
        with suppress(ValueError, OverflowError):
            value = self.kind(text)
            if self.holds(value):
                return value
        raise argparse.ArgumentTypeError(f"expected {self.expected}, got {text!r}")


def _is_positive(value: float) -> bool:
    """Return whether a number is positive and finite."""
    return 0 < value < math.inf


def _bytes(text: str) -> int:
    """Return the number of bytes of a size such as 500M or 4G, with binary prefixes."""
    digits = text.strip().upper().removesuffix("B")
    # The suffix K, M, G or T means a power of 1024 from 1 to 4; without one the power is 0.
    power = "KMGT".find(digits[-1:]) + 1
    return int(float(digits[:-1] if power else digits) * 1024**power)


def _or_auto(kind: Callable[[str], Any], expected: str) -> Value:
    """Return a converter that accepts "auto" or a positive number.

    ``kind`` converts the text of a number, and ``expected`` is for the error message.
    """
    return Value(
        lambda text: text if text == "auto" else kind(text),
        expected,
        lambda value: value == "auto" or _is_positive(value),
    )


def _numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a text such as 365,1825."""
    return tuple(float(part) for part in text.split(","))


Times = Annotated[
    tuple[float, ...] | None,
    Value(_numbers, "times such as 365,1825", lambda times: all(map(_is_positive, times))),
]
Place = Annotated[str | None, Value(str, "a name", bool)]
Positive = Annotated[float | None, Value(float, "a positive number", _is_positive)]
Size = Annotated[int | None, Value(_bytes, "a size such as 500M or 4G", _is_positive)]
Count = Annotated[int | None, Value(int, "a whole number of at least 1", _is_positive)]
CountOrAuto = Annotated[int | str | None, _or_auto(int, "a whole number of at least 1")]
PositiveOrAuto = Annotated[float | str | None, _or_auto(float, "a positive number, or auto")]
Seed = Annotated[
    int | None, Value(int, "a whole number from 0 to 2**32 - 1", lambda value: 0 <= value < 2**32)
]
Share = Annotated[float | None, Value(float, "a share such as 0.1", lambda value: 0 < value < 1)]
Fraction = Annotated[float, Value(float, "a share from 0 to below 1", lambda value: 0 <= value < 1)]


def add_options(parser: Any, kind: type, names: Collection[str] = ()) -> None:
    """Add the fields of a dataclass as options.

    Without ``names``, these are the fields that its docstring describes; with ``names``, the fields
    of these names, including fields of nested dataclasses. ``parser`` is the argument parser or a
    group of it and ``kind`` the dataclass.
    """
    descriptions = _DESCRIBED.findall(f"{inspect.getdoc(kind)}\n")
    described = {name: (text, word) for name, word, text in descriptions}
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        name = field.name
        if is_dataclass(hint) and name in names:
            add_options(parser, hint)  # type: ignore[arg-type]
        elif name in names or (not names and name in described):
            add_option(parser, name, hint, field.default, *described.get(name, ("", "str")))


def add_option(
    parser: Any, name: str, hint: Any, default: Any, text: str, word: str, required: bool = False
) -> None:
    """Add one option of the type ``hint``, with its help ``text``.

    ``name`` and ``default`` are those of the field. ``word`` is the placeholder of the value in the
    help, such as "file" or "number". ``required`` is whether the option must be given. ``parser``
    is the argument parser.
    """
    converter = None
    if get_origin(hint) is Annotated:
        hint, converter = get_args(hint)
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    # A tuple of str takes several names, and any other tuple one text (a file). A bool is a switch,
    # a Literal has choices, others have a converter.
    settings: dict[str, Any] = {"metavar": _SHOWN.get(word, word.upper())}
    if get_origin(hint) is tuple:
        # An option that is not given is None, and the dataclass keeps its own default. Given names
        # would be appended to another default.
        default = None
        if kinds[0] is str:
            settings = {"action": "append", "metavar": "NAME[,NAME...]"}
    elif bool in kinds:
        has_negation = default is not False
        settings = {"action": argparse.BooleanOptionalAction if has_negation else "store_true"}
    elif Literal in (get_origin(hint), get_origin(kinds[0])):
        # The empty choice is a default only: the option is not given.
        settings = {"choices": [choice for choice in get_args(kinds[0]) or kinds if choice]}
    else:
        settings["type"] = converter or kinds[0]
    if required:
        settings["required"] = True
    option = f"--{name.replace('_', '-')}"
    text = " ".join(text.split())
    parser.add_argument(
        option, default=default, help=text.removesuffix(".").replace("%", "%%"), **settings
    )


def given_to(kind: type, options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of the dataclass ``kind`` that the ``options`` set, by their names.

    They are arguments of its constructor. Fields that are dataclasses are constructed in the same
    way.
    """
    values: dict[str, Any] = {}
    arguments = vars(options)
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            values[name] = hint(**given_to(hint, options))  # type: ignore[arg-type, operator]
        elif arguments.get(name) is not None:
            values[name] = arguments[name]
    return values
