"""Sparse plus low rank: 1000 x 1000 of rank 10 with 5 % gross errors, and the escalator video
(198 frames, every second pixel).

min 1/2 ||Y - L - S||^2 + level (||L||_* + mu ||S||_1), mu = 1 / sqrt(side). Ours to a proved gap,
against accelerated proximal gradient and ADMM to the same objective (within the gap). Recovery is
told by the relative errors of both parts and the F1 score of the support of S. With --out the
video's parts are kept as one small picture, escalator.png: a frame, its background, its people.
"""

from __future__ import annotations

import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.designs import Identity
from atomlearn.norms import L1, Scaled, TraceNorm, Union
from atomlearn.result import Result
from benchmarks.harness import Options, Table
from benchmarks.harness.real_data import data_file
from benchmarks.matrices.rivals import robust_admm, robust_proximal
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]
GAP = 1e-4


def made(side: int, rank: int, share: float, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return Y = L + S + small noise, L of standard deviation 1, and S of size up to 10."""
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((side, rank)) @ rng.standard_normal((rank, side)) / np.sqrt(rank)
    S = np.where(rng.random(L.shape) < share, rng.uniform(-10.0, 10.0, L.shape), 0.0)
    return L + S + 0.01 * rng.standard_normal(L.shape), L, S


def split(Y: Array, level: float, mu: float, gap: float = GAP) -> tuple[Result, Array, Array]:
    """Return the fit with its low-rank and its sparse part."""
    norm = Union([TraceNorm(), Scaled(L1(), mu)])
    fit = solve_sum(Identity(Y.shape), Y.reshape(-1), norm=norm, level=level, tol=gap)
    low, sparse = (np.asarray(part.dense(Y.shape)) for part in fit.matrix_parts)
    return fit, low, sparse


def quality(low: Array, sparse: Array, L: Array, S: Array) -> dict[str, float]:
    """Return relative errors and the F1 score of the support."""
    hit = float(np.count_nonzero((sparse != 0) & (S != 0)))
    f1 = 2.0 * hit / (np.count_nonzero(sparse) + np.count_nonzero(S))
    return {
        "error_low_rank": float(np.linalg.norm(low - L) / np.linalg.norm(L)),
        "error_sparse": float(np.linalg.norm(sparse - S) / np.linalg.norm(S)),
        "f1_support": f1,
    }


def contest(side: int, rank: int, limit_s: float) -> list[dict[str, Any]]:
    """Return a row for each solver."""
    Y, L, S = made(side, rank, 0.05)
    # Entries are told from noise of 0.01 at four standard deviations, singular values at two.
    mu, level = 1.0 / np.sqrt(side), 0.04 * np.sqrt(side)
    began = time.perf_counter()
    fit, low, sparse = split(Y, level, mu)
    rows: list[dict[str, Any]] = [
        {
            "solver": "ours",
            "seconds": time.perf_counter() - began,
            "objective": fit.objective,
            "relative_gap": fit.relative_gap,
            "passes": fit.passes,
            "rank": int(np.linalg.matrix_rank(low)),
            **quality(low, sparse, L, S),
            "ended": fit.status.name,
        }
    ]
    near = fit.objective * (1 + GAP)
    for name, rival in (("proximal gradient", robust_proximal), ("ADMM", robust_admm)):
        curve, low, sparse = rival(Y, level, mu, near, limit_s)
        rows.append(
            {
                "solver": name,
                "seconds": curve.seconds[-1],
                "objective": curve.objectives[-1],
                "relative_gap": float("nan"),
                "passes": len(curve.seconds),
                "rank": int(np.linalg.matrix_rank(low)),
                **quality(low, sparse, L, S),
                "ended": "REACHED" if curve.objectives[-1] <= near else "TIME_LIMIT",
            }
        )
    return rows


def video(frames: int, step: int, out: Path | None) -> dict[str, Any] | None:
    """Split the escalator video; None if it is not on this machine."""
    found = data_file("video/escalator.npz")
    if not found.exists():
        return None
    pictures = np.load(found)["frames"][:frames, ::step, ::step].astype(np.float64) / 255.0
    Y = pictures.reshape(pictures.shape[0], -1).T
    began = time.perf_counter()
    # Grey values of people differ from the background by more than 0.06.
    long = np.sqrt(max(Y.shape))
    fit, low, sparse = split(Y, 0.06 * long, 1.0 / long, 1e-3)
    seconds = time.perf_counter() - began
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        chosen = [frames // 4, frames // 2, 3 * frames // 4]
        parts = [M.T.reshape(pictures.shape) for M in (Y, low, np.abs(sparse))]
        rows = [np.hstack([part[frame] for part in parts]) for frame in chosen]
        (out / "escalator.png").write_bytes(png(np.vstack(rows)))
    return {
        "solver": "ours",
        "seconds": seconds,
        "objective": fit.objective,
        "relative_gap": fit.relative_gap,
        "passes": fit.passes,
        "rank": int(np.linalg.matrix_rank(low, tol=1e-6 * np.linalg.norm(low, 2))),
        "share_of_people": float(np.mean(sparse != 0)),
        "ended": fit.status.name,
    }


def png(picture: Array) -> bytes:
    """Return a grey picture with values in [0, 1] as PNG."""
    grey = np.clip(np.rint(255.0 * picture), 0, 255).astype(np.uint8)
    lines = np.column_stack([np.zeros(grey.shape[0], np.uint8), grey]).tobytes()

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    return b"".join(
        [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines, 9)),
         chunk(b"IEND", b"")]
    )  # fmt: skip


def main() -> None:
    """Three rows on made data, one on the video."""
    options = Options.parse(__doc__)
    with Table("robust_pca", options) as table:
        for row in contest(60 if options.smoke else 1000, 3 if options.smoke else 10, 120.0):
            table.add(data="made", **row)
        row = video(20, 5, options.out) if options.smoke else video(198, 2, options.out)
        if row is not None:
            table.add(data="escalator", **row)


if __name__ == "__main__":
    main()
