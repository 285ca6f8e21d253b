"""Pictures of matrices: low rank and sparse parts, sparse components, affinities with blocks."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn.core.interfaces import Array
from atomlearn.reports import svg
from atomlearn.reports.structure import Drawing, drawing_of
from atomlearn.reports.style import STYLE


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of gray (h, w), colored (h, w, 3) or half clear pixels (h, w, 4)."""
    pixels = np.ascontiguousarray(pixels, dtype=np.uint8)
    height, width = pixels.shape[:2]
    kind = 0 if pixels.ndim == 2 else {3: 2, 4: 6}[pixels.shape[2]]
    rows = pixels.reshape(height, -1)
    filtered = np.hstack([np.zeros((height, 1), dtype=np.uint8), rows])

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    packed = zlib.compress(filtered.tobytes(), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


def decomposition_plot(
    X: ArrayLike, low_rank: ArrayLike, sparse: ArrayLike, shape: tuple[int, int] | None = None,
    row: int = 0,
) -> Drawing:  # fmt: skip
    """Return X, its low-rank part and its sparse part side by side.

    Parameters
    ----------
    X, low_rank, sparse : (n_samples, n_features) arrays
        ``model.low_rank_`` and ``model.sparse_`` of ``SparseLowRank``.
    shape : (height, width), optional
        Where each row of X is a picture: its shape. Row number ``row`` is drawn then.
    """
    tables = [
        _matrix(name, M) for name, M in (("X", X), ("low_rank", low_rank), ("sparse", sparse))
    ]
    if len({M.shape for M in tables}) > 1:
        raise ValueError(
            f"X, low_rank and sparse must have one shape, got "
            f"{[M.shape for M in tables]}; pass the X that the model was fitted to"
        )
    if shape is not None:
        if tables[0].shape[1] != int(np.prod(shape)):
            raise ValueError(
                f"shape {shape} has {int(np.prod(shape))} pixels and rows of X have "
                f"{tables[0].shape[1]}; pass the shape of one picture"
            )
        tables = [M[row].reshape(shape) for M in tables]
    low, high = float(tables[0].min()), float(tables[0].max())
    pictures = [_gray(tables[0], low, high), _gray(tables[1], low, high), _signed(tables[2])]
    return _side_by_side(pictures, ["data", "low rank", "sparse"], "Sparse plus low rank")


def components_plot(
    components: ArrayLike, names: Sequence[str] | None = None, top: int = 12
) -> Drawing:
    """Return sparse components as rows of a picture, red positive and blue negative.

    Parameters
    ----------
    components : (n_components, n_features) array
        ``model.components_`` of ``SparsePCA``; the first ``top`` are drawn.
    names : list of str, optional
        Of the features; by default their numbers.
    """
    table = _matrix("components", components)[:top]
    used = np.flatnonzero(table.any(axis=0))
    width, left, cell = 720.0, 60.0, 18.0
    step = (width - left - 10.0) / max(used.size, 1)
    shown = [str(feature) if names is None else str(names[int(feature)]) for feature in used]
    largest = float(np.abs(table).max(initial=0.0)) or 1.0
    pieces = []
    for number, row in enumerate(table):
        y = 10.0 + number * (cell + 3)
        pieces.append(svg.text(left - 6, y + 13, str(number + 1), "tick", "end"))
        for place, feature in enumerate(used):
            if not row[feature]:
                continue
            title = f"component {number + 1}, {shown[place]}: {row[feature]:.4g}"
            color = STYLE.positive if row[feature] > 0 else STYLE.series[0]
            x, wide, shade = left + place * step, max(step - 1, 0.5), abs(row[feature]) / largest
            pieces.append(svg.bar(x, y, wide, cell, title, "part", color, shade))
    floor = 10.0 + table.shape[0] * (cell + 3)
    if used.size <= 60:
        for place, name in enumerate(shown):
            pieces.append(svg.turned(left + (place + 0.6) * step, floor + 8, name, -50))
    pieces.append(svg.text(left, floor + 62, "features in use", "label"))
    return drawing_of(pieces, "Sparse components", width, floor + 70)


def affinity_plot(affinity: Any, labels: ArrayLike | None = None) -> Drawing:
    """Return an affinity (n, n) as a picture, samples of one label together, blocks outlined.

    Parameters
    ----------
    affinity : (n, n) array or sparse array
        ``model.affinity_`` of ``MatrixPursuit``.
    labels : (n,) array, optional
        Clusters or classes; without them samples keep their order.
    """
    dense = affinity.toarray() if hasattr(affinity, "toarray") else affinity
    table = np.abs(_matrix("affinity", dense))
    n = table.shape[0]
    if table.shape != (n, n):
        raise ValueError(f"affinity must be square, got shape {table.shape}; pass model.affinity_")
    sizes = np.zeros(0, dtype=np.int64)
    if labels is not None:
        found = np.asarray(labels)
        if found.shape != (n,):
            raise ValueError(f"labels must have shape ({n},), one a sample, got {found.shape}")
        order = np.argsort(found, kind="stable")
        table = table[np.ix_(order, order)]
        sizes = np.unique(found, return_counts=True)[1]
    # Square roots, so that weak links can be seen beside strong ones.
    small = np.sqrt(_reduced(table))
    high = float(small.max(initial=0.0)) or 1.0
    side = 480.0
    pieces = [image(255 - (255 * small / high).round().astype(np.uint8), 10.0, 10.0, side, side)]
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        start, length = 10.0 + side * (end - size) / n, side * size / n
        box = svg.bar(start, start, length, length, f"{size} samples", "outline")
        pieces.append(box)
    return drawing_of(pieces, "Affinity", side + 20, side + 20)


def _matrix(name: str, values: Any) -> Array:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(
            f"{name} must be a finite, non-empty array of two dimensions, got shape {table.shape}; "
            "pass what a fitted model holds"
        )
    return table


def _reduced(table: Array) -> Array:
    """Return block means, at most ``STYLE.most_pixels`` a side."""
    for axis in (0, 1):
        step = -(-table.shape[axis] // STYLE.most_pixels)
        if step > 1:
            starts = np.arange(0, table.shape[axis], step)
            counts = np.diff(np.append(starts, table.shape[axis]))
            sums = np.add.reduceat(table, starts, axis=axis)
            table = sums / (counts[:, None] if axis == 0 else counts)
    return table


def _gray(table: Array, low: float, high: float) -> NDArray[np.uint8]:
    scaled = (_reduced(table) - low) / ((high - low) or 1.0)
    return (255 * scaled.clip(0, 1)).round().astype(np.uint8)


def _signed(table: Array) -> NDArray[np.uint8]:
    """Return white for 0, red for positive and blue for negative values."""
    small = _reduced(table)
    strength = np.abs(small) / (float(np.abs(small).max(initial=0.0)) or 1.0)
    pixels = np.full((*small.shape, 3), 255.0)
    fade = 255.0 * (1.0 - strength)
    pixels[..., 1] = fade
    pixels[..., 0] = np.where(small < 0, fade, 255.0)
    pixels[..., 2] = np.where(small > 0, fade, 255.0)
    return pixels.round().astype(np.uint8)


def image(pixels: NDArray[np.uint8], x: float, y: float, width: float, height: float) -> str:
    """Return pixels as a part of a drawing."""
    data = base64.b64encode(png(pixels)).decode("ascii")
    return (
        f'<image x="{svg.number(x)}" y="{svg.number(y)}" width="{svg.number(width)}" '
        f'height="{svg.number(height)}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def _side_by_side(
    pictures: Sequence[NDArray[np.uint8]], labels: Sequence[str], title: str
) -> Drawing:
    pieces = []
    height = STYLE.picture * min(max(pictures[0].shape[0] / pictures[0].shape[1], 0.3), 2.0)
    for number, (pixels, label) in enumerate(zip(pictures, labels, strict=True)):
        x = STYLE.picture_gap + number * (STYLE.picture + STYLE.picture_gap)
        pieces.append(svg.text(x, 14.0, label, "label"))
        pieces.append(image(pixels, x, 22.0, STYLE.picture, height))
        pieces.append(svg.bar(x, 22.0, STYLE.picture, height, label, "outline"))
    total = STYLE.picture_gap + len(pictures) * (STYLE.picture + STYLE.picture_gap)
    return drawing_of(pieces, title, total, height + 34.0)
