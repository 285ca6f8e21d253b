"""Shapes of matrices and tensors, as users give them."""

from __future__ import annotations

import math
from typing import Any

Shape = tuple[int, int]


def check_tensor_shape(owner: str, shape: object) -> tuple[int, ...]:
    """Return the shape as a tuple of whole numbers >= 1, or raise with the remedy."""
    try:
        sizes = tuple(int(size) for size in shape)  # type: ignore[attr-defined]
        exact = all(size == given for size, given in zip(sizes, shape, strict=True))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        sizes, exact = (), False
    if not exact or len(sizes) < 2 or min(sizes) < 1 or math.prod(sizes) >= 2**62:
        raise ValueError(
            f"{owner}: shape must be two or more whole numbers >= 1, got {shape!r}; "
            "pass the shape of the matrix such as (100, 20)"
        )
    return sizes


def agreed_shape(owner: object, given: Any, shape: Any) -> Any:
    """Return the shape of W: the one given to a norm, else that of the design; they must agree."""
    if given is None or shape is None:
        return shape if given is None else given
    if tuple(given) != tuple(shape):
        raise ValueError(
            f"{owner!r} is for matrices of shape {tuple(given)}, and the design's matrix is of "
            f"shape {tuple(shape)}; leave shape out"
        )
    return given
