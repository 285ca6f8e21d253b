"""The ridge problem of ADMM: min_w,b f(X w + b) + tau/2 ||w||^2 + rho/2 ||w - center||^2.

With c = tau + rho and w0 = rho center / c it is f(X w + b) + c/2 ||w - w0||^2. Where n <= p the
unknown is theta in R^n, w = w0 - X'theta / c, and K = X X' is all of X that Newton's method needs
(the matrix inversion lemma); else the unknown is w itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve

from atomlearn.core import is_quadratic
from atomlearn.core.interfaces import Array, Block, Design
from atomlearn.core.interfaces.forwarding import Forwarding
from atomlearn.core.problem.problem import Problem, loss_gradient, optimal_intercept
from atomlearn.designs import Tasks

#: Bound on Newton steps, and on halvings of one.
INNER_STEPS = 100
#: Columns gathered at a time for K = X X'.
COLUMNS_TOGETHER = 4096
#: The largest Gram matrix, in bytes.
GRAM_BYTES = 8 * 2**30


@dataclass(frozen=True, slots=True)
class RidgePoint:
    """unknown : theta or w; image : K theta / c or X w, linear in it; intercept : b."""

    unknown: Array
    image: Array
    intercept: float

    def moved(self, move: RidgePoint, length: float) -> RidgePoint:
        """Return the point ``length`` along a move."""
        return RidgePoint(
            self.unknown + length * move.unknown,
            self.image + length * move.image,
            self.intercept + length * move.intercept,
        )


@dataclass(frozen=True, slots=True)
class Factor:
    """A factorization with the curvature and the c it belongs to: reused while they stay."""

    lu: tuple[Array, NDArray[np.int32]]
    curvature: Array
    c: float

    def serves(self, curvature: Array, c: float) -> bool:
        """Return whether this is the factorization for that curvature and c."""
        return self.c == c and np.array_equal(self.curvature, curvature)


def _tasks(design: Design) -> Tasks | None:
    """Return the design of several targets that lies inside this one, if any."""
    while isinstance(design, Forwarding):
        design = design.inner
    return design if isinstance(design, Tasks) else None


class RidgeSystem(ABC):
    """The Gram matrix of the smaller side, with warm start and last factorization (mutable).

    theta : (n,) last f'(X w + b); intercept : last b; factor : last factorization.
    """

    def __init__(self, theta: Array, intercept: float) -> None:
        self.theta = theta
        self.intercept = intercept
        self.factor: Factor | None = None

    @classmethod
    def of(cls, problem: Problem, prediction: Array, intercept: float) -> RidgeSystem:
        """Gather the Gram matrix of the smaller side."""
        design = problem.design
        n_samples, n_features = design.shape
        theta = loss_gradient(problem, prediction)
        smaller = min(n_samples, n_features)
        tasks = _tasks(design)
        if tasks is not None and TaskSpace.serves(problem):
            return TaskSpace(
                tasks.base, tasks.n_tasks, problem.y, float(problem.weight[0]), theta, intercept
            )
        if smaller * smaller * 8 > GRAM_BYTES:
            raise ValueError(
                f"ADMM holds a Gram matrix of {smaller} x {smaller}, "
                f"{smaller * smaller * 8 / 2**30:.0f} GiB; use ColumnGeneration or FISTA"
            )
        if n_features < n_samples:
            return CoordinateSpace(design.gather(np.arange(n_features)), theta, intercept)
        outer = np.zeros((n_samples, n_samples))
        for start in range(0, n_features, COLUMNS_TOGETHER):
            columns = np.arange(start, min(start + COLUMNS_TOGETHER, n_features))
            part = design.gather(columns).dense().astype(np.float64)
            outer += part @ part.T
        return SampleSpace(outer, theta, intercept)

    @abstractmethod
    def mean_eigenvalue(self, problem: Problem) -> float:
        """Return trace(X' diag(s) X) / min(n, p), the scale of rho; 1 where X is zero."""

    @abstractmethod
    def solve(self, problem: Problem, center: Array, rho: float, accuracy: float) -> Array:
        """Return w, and keep b in ``intercept``."""


class NewtonSystem(RidgeSystem):
    """A system of any smooth loss, by damped Newton steps."""

    @abstractmethod
    def _predict(self, offset: Array, point: RidgePoint) -> Array:
        """Return z = X w + b."""

    @abstractmethod
    def _quadratic(self, offset: Array, point: RidgePoint, c: float) -> float:
        """Return c/2 ||w - w0||^2."""

    @abstractmethod
    def _matrix(self, problem: Problem, curvature: Array, c: float) -> Array:
        """Return the matrix of the Newton system; it may be overwritten."""

    @abstractmethod
    def _move(
        self, problem: Problem, offset: Array, point: RidgePoint, derivative: Array, factor: Factor
    ) -> tuple[RidgePoint, float, float]:
        """Return the Newton move, the slope along it and the size of the residual."""

    def _newton(
        self, problem: Problem, offset: Array, point: RidgePoint, c: float, accuracy: float
    ) -> RidgePoint:
        """Damped Newton until the residual is ``accuracy`` times its first size."""
        loss, y, s = problem.loss, problem.y, problem.weight
        first = 0.0
        for _ in range(INNER_STEPS):
            z = self._predict(offset, point)
            curvature = loss.curvature(y, z, s)
            if self.factor is None or not self.factor.serves(curvature, c):
                matrix = self._matrix(problem, curvature, c)
                lu = lu_factor(matrix, overwrite_a=True, check_finite=False)
                self.factor = Factor(lu, curvature, c)
            derivative = loss_gradient(problem, z)
            move, slope, size = self._move(problem, offset, point, derivative, self.factor)
            first = max(first, size)
            if size <= accuracy * first:
                break
            value = loss.value(y, z, s) + self._quadratic(offset, point, c)
            length = 1.0
            for _ in range(INNER_STEPS):
                trial = point.moved(move, length)
                reached = loss.value(y, self._predict(offset, trial), s)
                reached += self._quadratic(offset, trial, c)
                if reached <= value + 1e-4 * length * slope + 1e-14 * abs(value):
                    break
                length *= 0.5
            point = trial
            if -slope <= 1e-15 * abs(value):
                break
        return point


class SampleSpace(NewtonSystem):
    """n <= p: Newton on f(z) + theta'K theta / (2c), z = X w0 - K theta / c + b."""

    def __init__(self, outer: Array, theta: Array, intercept: float) -> None:
        super().__init__(theta, intercept)
        self.outer = outer

    def mean_eigenvalue(self, problem: Problem) -> float:
        return float(np.mean(problem.weight * np.diag(self.outer))) or 1.0

    def solve(self, problem: Problem, center: Array, rho: float, accuracy: float) -> Array:
        """Return w by two passes over the data."""
        c = problem.tau + rho
        w0 = (rho / c) * center
        offset = problem.design.predict(w0)
        image = self.outer @ self.theta / c
        b = optimal_intercept(problem, offset - image, self.intercept)
        point = RidgePoint(self.theta, image, b)
        point = self._newton(problem, offset, point, c, accuracy)
        self.theta, self.intercept = point.unknown, point.intercept
        return np.asarray(w0 - problem.design.scores(self.theta).full() / c)

    def _predict(self, offset: Array, point: RidgePoint) -> Array:
        return offset - point.image + point.intercept

    def _quadratic(self, offset: Array, point: RidgePoint, c: float) -> float:
        return 0.5 * float(point.unknown @ point.image)

    def _matrix(self, problem: Problem, curvature: Array, c: float) -> Array:
        matrix = (curvature / c)[:, None] * self.outer
        matrix[np.diag_indices_from(matrix)] += 1.0
        return matrix

    def _move(
        self, problem: Problem, offset: Array, point: RidgePoint, derivative: Array, factor: Factor
    ) -> tuple[RidgePoint, float, float]:
        """Solve (I + D K / c) dtheta = f'(z) - theta + D 1 db with 1'(theta + dtheta) = 0."""
        residual = derivative - point.unknown
        change, shift = lu_solve(factor.lu, residual), 0.0
        if problem.fit_intercept:
            spread = lu_solve(factor.lu, factor.curvature)
            total = float(spread.sum())
            if total > 0:
                shift = -float(point.unknown.sum() + change.sum()) / total
                change = change + shift * spread
        image = self.outer @ change / factor.c
        slope = shift * float(derivative.sum()) - float(residual @ image)
        return RidgePoint(change, image, shift), slope, float(np.linalg.norm(residual))


class TaskSpace(RidgeSystem):
    """I kron X and the squared loss: (s X'X + c I) W = s X'Y + c W0, one small system for all.

    The eigenvalues of X X' or X'X, whichever is smaller, serve every c.
    """

    def __init__(
        self, base: Design, n_tasks: int, y: Array, weight: float, theta: Array, intercept: float
    ) -> None:
        super().__init__(theta, intercept)
        self.X = base.gather(np.arange(base.shape[1])).dense().astype(np.float64)
        self.Y, self.scale = y.reshape(-1, n_tasks), weight
        self.of_rows = self.X.shape[0] <= self.X.shape[1]
        gram = self.X @ self.X.T if self.of_rows else self.X.T @ self.X
        self.values, self.vectors = np.linalg.eigh(gram)
        self.pulled = self.X.T @ self.Y

    @staticmethod
    def serves(problem: Problem) -> bool:
        """Return whether the tasks do not touch each other and weigh the same."""
        weight = problem.weight
        plain = is_quadratic(problem.loss) and not problem.fit_intercept
        return plain and bool((weight == weight[0]).all())

    def mean_eigenvalue(self, problem: Problem) -> float:
        return float(self.scale * self.values.mean()) or 1.0

    def solve(self, problem: Problem, center: Array, rho: float, accuracy: float) -> Array:
        """Return w exactly: two products with X, which are two passes."""
        c = problem.tau + rho
        W0 = (rho / c) * center.reshape(self.X.shape[1], -1)
        shrink = 1.0 / (c + self.scale * self.values)
        if self.of_rows:
            rest = self.vectors.T @ (self.Y - self.X @ W0)
            W = W0 + self.scale * (self.X.T @ (self.vectors @ (shrink[:, None] * rest)))
        else:
            right = self.vectors.T @ (self.scale * self.pulled + c * W0)
            W = self.vectors @ (shrink[:, None] * right)
        return np.asarray(W.reshape(-1))


class CoordinateSpace(NewtonSystem):
    """p < n: Newton on f(X w + b) + c/2 ||w - w0||^2 itself; X is held as a block."""

    def __init__(self, block: Block, theta: Array, intercept: float) -> None:
        super().__init__(theta, intercept)
        self.block = block

    def mean_eigenvalue(self, problem: Problem) -> float:
        return float(self.block.squared_norms(problem.weight).mean()) or 1.0

    def solve(self, problem: Problem, center: Array, rho: float, accuracy: float) -> Array:
        """Return w; the products are with the block in memory."""
        c = problem.tau + rho
        w0 = (rho / c) * center
        w = w0 - self.block.scores(self.theta).full() / c
        linear = self.block.predict(w)
        b = optimal_intercept(problem, linear, self.intercept)
        point = self._newton(problem, w0, RidgePoint(w, linear, b), c, accuracy)
        z = self._predict(w0, point)
        self.theta = loss_gradient(problem, z)
        self.intercept = point.intercept
        return point.unknown

    def _predict(self, offset: Array, point: RidgePoint) -> Array:
        return point.image + point.intercept

    def _quadratic(self, offset: Array, point: RidgePoint, c: float) -> float:
        distance = point.unknown - offset
        return 0.5 * c * float(distance @ distance)

    def _move(
        self, problem: Problem, offset: Array, point: RidgePoint, derivative: Array, factor: Factor
    ) -> tuple[RidgePoint, float, float]:
        """Solve (X'DX + c I) dw + X'D1 db = -gradient, bordered by the intercept."""
        gradient = self.block.scores(derivative).full() + factor.c * (point.unknown - offset)
        of_b = float(derivative.sum()) if problem.fit_intercept else 0.0
        full = np.append(gradient, of_b)
        move = -lu_solve(factor.lu, full)
        image = self.block.predict(move[:-1])
        step = RidgePoint(move[:-1], image, float(move[-1]))
        return step, float(full @ move), float(np.linalg.norm(full))

    def _matrix(self, problem: Problem, curvature: Array, c: float) -> Array:
        """Return X'DX + c I with the border of b: 1 alone where b has no part or no curvature."""
        size = self.block.shape[1]
        matrix = np.zeros((size + 1, size + 1))
        matrix[:size, :size] = self.block.gram(curvature)
        matrix[np.arange(size), np.arange(size)] += c
        total = float(curvature.sum())
        matrix[size, size] = 1.0
        if problem.fit_intercept and total > 0:
            matrix[size, :size] = matrix[:size, size] = self.block.scores(curvature).full()
            matrix[size, size] = total
        return matrix
