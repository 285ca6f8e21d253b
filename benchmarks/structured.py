"""Structure at scale: two million implicit interactions, and a million overlapping groups.

Hierarchy: 2,000 main effects and all interactions, n = 1000, a path of ten levels to 0.3 of the
largest, each certified to 1e-4, weak and strong; adelie's interaction path (strong: groups of three
with both main effects) on the same data and levels, its set-up counted, without certificate.
Latent groups: 10^6 random groups of 8 over 10^6 sparse columns (10 values each), n = 10^4,
logistic with intercept, certified to 1e-6 at two levels. Peak memory is that of the process, data
included.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import norms
from atomlearn.designs import Polynomial, as_design
from atomlearn.paths import path
from benchmarks.harness import Options, Table, Worker
from tests.oracles.sums import solve_sum

Array = np.ndarray[Any, np.dtype[np.float64]]


class Interactions:
    """Data with ten planted main effects and ten planted products of them."""

    def __init__(self, n: int, p: int) -> None:
        rng = np.random.default_rng(0)
        self.X = np.asfortranarray(rng.standard_normal((n, p)))
        main = rng.choice(p, 10, replace=False)
        ends = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (0, 2), (1, 3), (4, 6), (5, 7), (0, 8)]
        self.pairs = {tuple(sorted((int(main[i]), int(main[j])))) for i, j in ends}
        y = 2.0 * self.X[:, main] @ rng.choice([-1.0, 1.0], 10)
        for i, j in self.pairs:
            y = y + 2.0 * self.X[:, i] * self.X[:, j]
        self.y = y + rng.standard_normal(n)

    def ours(self, kind: str) -> dict[str, Any]:
        """Return a row for our path."""
        began = time.perf_counter()
        design = Polynomial.interactions(self.X)
        norm = norms.Hierarchy(kind)
        result = path(
            design, self.y, norm=norm, n_alphas=10, alpha_ratio=0.3, tol=1e-4, fit_intercept=False
        )
        seconds = time.perf_counter() - began
        self.levels = len(self.y) * result.alphas
        last = result.results[-1]
        chosen = {design.pair(int(c)) for c in last.columns if c >= self.X.shape[1]}
        return {
            "solver": f"atomlearn, {kind}",
            "seconds": seconds,
            "passes": result.passes,
            "certified": sum(r.converged for r in result.results),
            "planted_found": len(self.pairs & {tuple(sorted(pair)) for pair in chosen}),
            "objective": last.objective,
            "selected": last.columns.size,
        }

    def adelie(self) -> dict[str, Any]:
        """Return a row for adelie on the strong problem, at the levels of our last path."""
        import adelie as ad

        began = time.perf_counter()
        n, p = self.X.shape
        pairs = ad.matrix.interaction(self.X, dict.fromkeys(range(p)), n_threads=2)
        matrix = ad.matrix.concatenate(
            [ad.matrix.dense(self.X, method="naive", n_threads=2), pairs], axis=1, n_threads=2
        )
        triples = np.arange(p, p + pairs.cols(), 3)
        groups = np.concatenate([np.arange(p), triples])
        state = ad.grpnet(
            matrix, ad.glm.gaussian(self.y), groups=groups, penalty=np.ones(groups.size),
            lmda_path=self.levels / n, intercept=False, early_exit=False, progress_bar=False,
            n_threads=2,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        u = np.asarray(state.betas[-1].toarray()).ravel()
        # adelie lists the pairs (i, j) in lexicographic order, i < j.
        firsts, seconds_of = np.triu_indices(p, 1)
        triple = u[p:].reshape(-1, 3)
        used = np.flatnonzero(triple[:, 2])
        found = {(int(firsts[k]), int(seconds_of[k])) for k in used}
        z = self.X @ u[:p]
        for k in np.flatnonzero(triple.any(axis=1)):
            i, j = self.X[:, firsts[k]], self.X[:, seconds_of[k]]
            z += triple[k, 0] * i + triple[k, 1] * j + triple[k, 2] * i * j
        penalty = np.abs(u[:p]).sum() + np.sqrt((triple**2).sum(axis=1)).sum()
        return {
            "solver": "adelie, strong",
            "seconds": seconds,
            "planted_found": len(self.pairs & found),
            "objective": 0.5 * float(((self.y - z) ** 2).sum())
            + float(self.levels[-1]) * float(penalty),
            "selected": int(np.count_nonzero(u)),
        }


class Overlapping:
    """A sparse logistic problem with a million groups."""

    def __init__(self, n: int, p: int, n_groups: int) -> None:
        rng = np.random.default_rng(0)
        rows = rng.integers(0, n, size=10 * p).astype(np.int32)
        starts = np.arange(0, 10 * p + 1, 10, dtype=np.int32)
        self.X = sparse.csc_matrix((rng.standard_normal(10 * p), rows, starts), shape=(n, p))
        self.X.sum_duplicates()
        members = np.sort(rng.integers(0, p, size=(n_groups, 8)), axis=1)
        twice = (np.diff(members, axis=1) == 0).any(axis=1)
        members[twice] = np.sort((members[twice][:, :1] + np.arange(8)) % p, axis=1)
        parts = (
            np.ones(8 * n_groups, dtype=bool),
            members.ravel(),
            np.arange(0, 8 * n_groups + 1, 8),
        )
        self.groups = sparse.csc_matrix(parts, shape=(p, n_groups))
        self.planted = rng.choice(n_groups, min(100, n_groups // 10), replace=False)
        w = np.zeros(p)
        for group in self.planted:
            w[members[group]] += 3.0 * rng.standard_normal(8)
        self.y = np.sign(self.X @ w + 0.3 * rng.standard_normal(n))
        self.y[self.y == 0] = 1.0

    def ours(self, share: float) -> dict[str, Any]:
        """Return a row for one level."""
        norm = norms.LatentGroups(self.groups)
        design = as_design(self.X)
        largest = norm.polar(design.scores(0.5 * self.y))
        began = time.perf_counter()
        result = solve_sum(
            design, self.y, loss="logistic", norm=norm, level=share * largest, fit_intercept=True
        )
        seconds = time.perf_counter() - began
        groups = {part.group for part in result.parts or []}
        return {
            "solver": f"atomlearn, level {share:g}",
            "seconds": seconds,
            "passes": result.passes,
            "certified": int(result.converged),
            "planted_found": len(groups & set(self.planted.tolist())),
            "objective": result.objective,
            "selected": result.columns.size,
        }


def main() -> None:
    """Both problems, each in a process of its own."""
    options = Options.parse(__doc__)
    with Table("structured", options) as table:
        size = (100, 40) if options.smoke else (1000, 2000)
        with Worker(Interactions, *size) as worker:
            for kind in ("weak", "strong"):
                row = worker.call("ours", kind)
                table.add(problem="hierarchy", **row, peak_gb=worker.peak() / 1e9)
        if find_spec("adelie"):
            with Worker(Interactions, *size) as worker:
                worker.call("ours", "strong")
                row = worker.call("adelie")
                table.add(problem="hierarchy", **row, peak_gb=worker.peak() / 1e9)
        size = (200, 2000, 1000) if options.smoke else (10_000, 1_000_000, 1_000_000)
        with Worker(Overlapping, *size) as worker:
            for share in (0.5, 0.2):
                row = worker.call("ours", share)
                table.add(problem="overlapping groups", **row, peak_gb=worker.peak() / 1e9)


if __name__ == "__main__":
    main()
