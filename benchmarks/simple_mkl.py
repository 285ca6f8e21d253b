"""SimpleMKL on scikit-learn's SVC: the rival of ``designs.Kernels``, on the same problem.

min over d in the simplex of J(d) = max_a  a'1 - a'a / (2 C) - 1/2 (a y)' (sum_m d_m K_m) (a y),
a >= 0, a'y = 0: the dual of 1/2 sum_m ||f_m||^2 / d_m + C/2 sum_i max(0, 1 - y_i f(x_i))^2, by
reduced gradients and a line search, an SVM for each J. [Rakotomamonjy, Bach, Canu, Grandvalet,
SimpleMKL, JMLR 9 (2008), Algorithm 1; squared hinge through a ridge of 1/C on the kernel]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC

Array = np.ndarray[Any, np.dtype[Any]]

#: C of the hard-margin SVM that the ridge leaves.
HARD = 1e10
#: Steps of the golden section.
GOLDEN = 12


@dataclass
class Machine:
    """The SVM at one d: its value J, the signed duals a y, and the intercept."""

    value: float
    signed: Array
    intercept: float


class SimpleMKL:
    """Fit to a stack of kernels, (n_kernels, n, n), and y of -1 and +1."""

    def __init__(
        self, C: float = 1.0, gap: float = 1e-2, max_iter: int = 500, time_limit_s: float = np.inf
    ) -> None:
        self.C, self.gap, self.max_iter, self.time_limit_s = C, gap, max_iter, time_limit_s
        self.machines = 0
        self.cut = False

    def fit(self, kernels: Array, y: Array) -> SimpleMKL:
        """Reduced gradient steps until the relative duality gap is ``gap``, or time is up.

        ``cut`` tells that it was, looked at after each step; ``relative_gap`` is then of the last
        point reached.
        """
        began = time.perf_counter()
        self.flat, self.y = kernels.reshape(len(kernels), -1), y
        d = np.full(len(kernels), 1.0 / len(kernels))
        machine = self._machine(d)
        for _ in range(self.max_iter):
            forms = self._forms(machine.signed)
            # The largest form bounds what any other d could reach with these duals.
            self.relative_gap = 0.5 * float(forms.max() - d @ forms) / abs(machine.value)
            if self.relative_gap <= self.gap:
                break
            if time.perf_counter() - began > self.time_limit_s:
                self.cut = True
                break
            before = machine.value
            d, machine = self._step(d, machine, -0.5 * forms)
            if before - machine.value <= 1e-12 * abs(before):
                break
        self.d, self.machine = d, machine
        return self

    def uniform(self, kernels: Array, y: Array) -> SimpleMKL:
        """Fit with equal weights instead."""
        self.flat, self.y = kernels.reshape(len(kernels), -1), y
        self.d = np.full(len(kernels), 1.0 / len(kernels))
        self.machine = self._machine(self.d)
        return self

    def decide(self, kernels: Array) -> Array:
        """Return the decisions for new rows, kernels (n_kernels, n_new, n)."""
        used = np.flatnonzero(self.d)
        mixed = np.tensordot(self.d[used], kernels[used].astype(np.float64), 1)
        return np.asarray(mixed @ self.machine.signed + self.machine.intercept)

    def _forms(self, signed: Array) -> Array:
        outer = np.outer(signed, signed).ravel().astype(self.flat.dtype)
        return np.asarray(self.flat @ outer, dtype=np.float64)

    def _machine(self, d: Array) -> Machine:
        n = self.y.size
        used = np.flatnonzero(d)
        kernel = (d[used].astype(self.flat.dtype) @ self.flat[used]).reshape(n, n)
        kernel = kernel.astype(np.float64) + np.eye(n) / self.C
        svm = SVC(C=HARD, kernel="precomputed", tol=1e-5, cache_size=500).fit(kernel, self.y)
        self.machines += 1
        signed = np.zeros(n)
        signed[svm.support_] = svm.dual_coef_[0]
        value = float(np.abs(signed).sum() - 0.5 * signed @ kernel @ signed)
        return Machine(value, signed, float(svm.intercept_[0]))

    def _direction(self, d: Array, gradient: Array) -> tuple[Array, int]:
        leader = int(np.argmax(d))
        reduced = gradient - gradient[leader]
        direction = np.where((d <= 0) & (reduced > 0), 0.0, -reduced)
        direction[leader] = 0.0
        direction[leader] = -direction.sum()
        return direction, leader

    def _step(self, d: Array, machine: Machine, gradient: Array) -> tuple[Array, Machine]:
        """Go to the edge as long as J falls there, then search on the last stretch."""
        direction, leader = self._direction(d, gradient)
        for _ in range(d.size):
            falling = np.flatnonzero(direction < 0)
            if not falling.size:
                return d, machine
            ratios = -d[falling] / direction[falling]
            longest = float(ratios.min())
            edge = np.maximum(d + longest * direction, 0.0)
            leaving = int(falling[np.argmin(ratios)])
            edge[leaving] = 0.0
            edge /= edge.sum()
            there = self._machine(edge)
            if there.value >= machine.value:
                break
            d, machine = edge, there
            direction[leader] += direction[leaving]
            direction[leaving] = 0.0
            if leaving == leader:
                return d, machine
        return self._search(d, machine, direction, longest)

    def _search(
        self, d: Array, machine: Machine, direction: Array, longest: float
    ) -> tuple[Array, Machine]:
        ratio = 0.5 * (np.sqrt(5.0) - 1.0)
        low, high = 0.0, longest
        best = d, machine
        points: dict[float, Machine] = {}

        def at(step: float) -> Machine:
            if step not in points:
                there = np.maximum(d + step * direction, 0.0)
                points[step] = self._machine(there / there.sum())
            return points[step]

        inner, outer = high - ratio * (high - low), low + ratio * (high - low)
        for _ in range(GOLDEN):
            if at(inner).value < at(outer).value:
                high, outer = outer, inner
                inner = high - ratio * (high - low)
            else:
                low, inner = inner, outer
                outer = low + ratio * (high - low)
        for step, there in points.items():
            if there.value < best[1].value:
                moved = np.maximum(d + step * direction, 0.0)
                best = moved / moved.sum(), there
        return best
