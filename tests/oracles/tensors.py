"""Tensors for tests: of PyTorch where ``ATOMLEARN_DEVICE`` says, of CuPy, and of the reference.

ATOMLEARN_DEVICE=cuda runs the tests of tensors on a GPU; without it they lie on the processor.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import pytest

from atomlearn.core import Array

PLACE = os.environ.get("ATOMLEARN_DEVICE", "cpu")
#: CuPy needs a GPU even to be imported usefully; without it nothing is made of it.
CUPY = find_spec("cupy") is not None and PLACE != "cpu"


def torch_tensor(X: Array) -> Any:
    """Return a tensor of PyTorch, on the device that is tested."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.from_numpy(X.copy()).to(PLACE)


def cupy_tensor(X: Array) -> Any:
    """Return an array of CuPy, which is always on a GPU."""
    import cupy

    return cupy.asarray(X)


def strict_tensor(X: Array) -> Any:
    """Return a tensor on a device whose arrays NumPy may not read."""
    strict = pytest.importorskip("array_api_strict")
    return strict.asarray(X.copy(), device=strict.Device("device1"))
