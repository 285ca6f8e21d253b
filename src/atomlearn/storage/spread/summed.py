"""Distributed problems: each machine returns sums over its rows, and no vector over rows is sent.

Let f be the loss as a function of the predictions, w the coefficients and b the intercept. The
minimum of f(X w + b) over b is a function F of w. This package treats F as a loss whose
"predictions" are the coefficients; its design (matrix X) is the identity. Let v = -f'(X w + b).
The gradient of F is -X'v, and its Hessian is a matrix over the columns in use. The convex conjugate
of F at X'v is at most f*(v), where f* is the conjugate of f. Norms, problem forms, master problems
(re-fits of a few columns) and column-generation solvers therefore work on F without changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky

from atomlearn._support import growth
from atomlearn.core import (
    Array,
    CachedBlock,
    Columns,
    DenseBlock,
    Design,
    Loss,
    Problem,
    RowAccess,
    SparseDesign,
    columns_for_kernel,
    distinct_columns,
    free_columns,
    is_quadratic,
    is_restrictable,
    least_shift,
)
from atomlearn.storage.spread.points import TaylorModel
from atomlearn.storage.spread.rows import NEAR, Sums, size_of

#: Number of points for which the sums of duality certificates are cached.
KEPT = 64
#: Maximum number of points in one distributed request.
AT_ONCE = 16
#: Tolerances on the intercept, in solver steps and in duality certificates: f may exceed its
#: minimum over the intercept by this share of f. The gap of a certificate includes the excess.
IN_STEPS = 1e-4
IN_PROOFS = 1e-14
#: Entries of an answer that do not depend on the point: the request has them once for all points.
SHARED = ("squares", "gradient", "pull", "hessian")


class OfCoefficients(Loss):
    """A loss as a function of the coefficients, with values and gradients at single points."""

    coupled = 0

    def check_target(self, y: object) -> Array:
        """Return the target y as floats; its values are not used: the machines have them."""
        return np.asarray(y, dtype=np.float64)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return inf for all arguments: the conjugate is known only at multiples of the gradient.

        ``conjugate_along`` bounds it there.
        """
        return math.inf


class Summed(OfCoefficients):
    """The profiled loss F(w) = min_b f(X w + b), computed from distributed sums over rows.

    Without an intercept F(w) = f(X w). A point u is a vector of coefficients (n_features,), at
    which F and its gradient are evaluated. In the methods of a loss, ``prediction`` is such a
    point; the arguments ``y`` and ``weight`` are not used, because the machines have them.

    The object caches sums: ``_squares`` are the squared norms of the columns requested so far (NaN
    for others), and ``_model`` is the last quadratic model of F. By point, ``_priced`` has the sums
    for duality certificates, and ``_shifts`` the optimal intercepts.

    Parameters
    ----------
    problem : Problem
        The problem over the rows.
    count : int
        Number of machines that have rows.
    send : callable
        Sends a request to all machines and returns the sum of their answers, see ``HeldRows``.

    Attributes
    ----------
    sent : (int, int)
        Number of requests so far, and total bytes of requests and answers.
    """

    def __init__(self, problem: Problem, count: int, send: Callable[[Sums], Sums]) -> None:
        """Begin without any sums over the rows of the ``problem``.

        ``send`` sends a request to all ``count`` machines.
        """
        self.name: str = problem.loss.name  # type: ignore[misc]
        self.quadratic = is_quadratic(problem.loss)
        self.intercept = problem.fit_intercept
        self.n_rows, self.size = problem.design.shape
        self.count = count
        self._squares = np.full(self.size, np.nan)
        self.sent = (0, 0)
        self._send = send
        # The first model has no columns.
        empty = np.zeros(0)
        zeros: Sums = {"pull": empty, "gradient": empty, "hessian": np.zeros((0, 0))}
        zeros |= dict.fromkeys(("slope", "curve", "shift", "value"), 0.0)
        self._model = TaylorModel(empty.astype(np.int64), empty, zeros, False)
        self._priced: dict[tuple[bytes, bytes], Sums] = {}
        self._shifts: dict[tuple[bytes, bytes], float] = {}

    # --- distributed requests -----------------------------------------------------------------

    def ask(
        self, kind: str, columns: Columns, weights: Array, shifts: Array, **more: Array
    ) -> list[Sums]:
        """Send one distributed request, and return the sums over all rows at each of k points.

        Parameters
        ----------
        kind : {"look", "bend", "price"}
            The set of sums: for values and slopes, for second derivatives, or for a duality
            certificate; see ``HeldRows.answer``.
        columns : (m,) int64
            Columns whose coefficients may be nonzero.
        weights : (k, m) float64
            Coefficients of these columns at each point.
        shifts : (k,) float64
            Intercept at each point.
        **more : arrays
            Other entries of the request.

        Returns
        -------
        list of k dict
            The sums at each point by name, and ``shift``, its intercept.
        """
        question = {"ask": kind, "columns": columns, "weights": weights, "shifts": shifts, **more}
        answer = self._send(question)
        n_bytes = size_of(question) + size_of(answer)
        self.sent = self.sent[0] + 1, self.sent[1] + self.count * n_bytes
        self._squares[columns] = answer["squares"]
        # Most sums have an entry for each point; some are the same for all points.
        return [
            {name: sums if name in SHARED else sums[k] for name, sums in answer.items()}
            | {"shift": shifts[k]}
            for k in range(shifts.size)
        ]

    def _sums_at_optimum(
        self, kind: str, columns: Columns, u: Array, first: Sums, tolerance: float
    ) -> Sums:
        """Return the sums at the coefficients u and the intercept that minimizes f.

        Newton's method starts at the intercept of a guess. It sends one request per step, and none
        if f at the guess is within ``tolerance`` times f of the minimum.

        Parameters
        ----------
        kind : {"look", "bend", "price"}
            The set of sums, see ``HeldRows.answer``.
        columns : (m,) int64
            Columns whose coefficients may be nonzero.
        u : (m,) array
            Their coefficients.
        first : dict
            The sums at the guessed intercept.
        tolerance : float
            Share of f by which f may exceed its minimum over the intercept.
        """
        if not self.intercept:
            return first
        # The sums by intercept. ``least_shift``, Newton's method, calls the functions below.
        sums_at = {first["shift"]: first}

        def slope(b: float) -> tuple[float, float]:
            """Return df/db at the intercept b, and the sum of the magnitudes of its terms.

            A slope s counts as 0 if the decrease s^2/(2 curvature) of a Newton step is small.
            """
            if b not in sums_at:
                sums_at[b] = self.ask(kind, columns, u[None], np.array([b]))[0]
            slope, curve, value = (sums_at[b][name] for name in ("slope", "curve", "value"))
            is_small = slope * slope <= 2.0 * curve * tolerance * value
            return 0.0 if is_small else slope, sums_at[b]["size"]

        def curve(b: float) -> float:
            """Return the second derivative of f at the intercept b, whose sums are known."""
            return float(sums_at[b]["curve"])

        def value(b: float) -> float:
            """Return f at the intercept b, whose sums are known."""
            return float(sums_at[b]["value"])

        return sums_at[least_shift(slope, curve, value, first["shift"], self.n_rows)]

    def prefetch(self, points: Sequence[Array]) -> None:
        """Request and cache the sums that duality certificates at these points need.

        A certificate proves how good a point is. One distributed request covers up to ``AT_ONCE``
        points, each a coefficient vector (n_features,). With an intercept, the dual vector v = -f'
        (one entry per row) has to sum to 0. If it does not at the guessed intercept, the intercept
        is refined. If v still does not sum to 0, its positive or its negative entries are
        multiplied by a factor below 1: those whose magnitudes have the larger sum. For points
        with a refined intercept or such a factor, the request is repeated.
        """
        new = [u for u in points if _key(u) not in self._priced]
        for start in range(0, len(new), AT_ONCE):
            batch = np.array(new[start : start + AT_ONCE])
            columns = np.flatnonzero(batch.any(axis=0))
            keys = list(map(_key, batch))
            W = batch[:, columns]
            cuts = np.zeros(len(batch))
            guess = self._model.shift_at
            repeated = list[int]()
            # First request, at intercepts that are cached or guessed, without factors (cuts).
            shifts = np.array(
                [self._shifts.get(key, guess(columns, u)) for key, u in zip(keys, W, strict=True)]
            )
            sums_of_points = self.ask("price", columns, W, shifts, cuts=cuts)
            for k, (u, first) in enumerate(zip(W, sums_of_points, strict=True)):
                # The regularization path starts at the smallest alpha for which w = 0 is optimal.
                # That alpha is computed from this point, so its intercept has to be exact.
                tolerance = IN_PROOFS if u.any() else 0.0
                sums = self._sums_at_optimum("look", columns, u, first, tolerance)
                shifts[k] = sums["shift"]
                # Let s be the sum of v, and a the sum of its magnitudes. The entries with the sign
                # of s add up to (a + abs(s)) / 2. The share 2 s / (a + abs(s)) of them is taken
                # away, so that v sums to 0.
                surplus = -sums["slope"] if self.intercept else 0.0
                cuts[k] = 2.0 * surplus / (sums["size"] + abs(surplus) or 1.0)
                # A cut below the rounding error of the sum of v is not worth a request.
                if sums is not first or abs(cuts[k]) > growth(self.n_rows):
                    repeated.append(k)
            if repeated:
                new_sums = self.ask(
                    "price", columns, W[repeated], shifts[repeated], cuts=cuts[repeated]
                )
                for k, sums in zip(repeated, new_sums, strict=True):
                    sums_of_points[k] = sums
            self._priced |= zip(keys, sums_of_points, strict=True)
        # Only the sums of the latest points are kept.
        for key in list(self._priced)[:-KEPT]:
            del self._priced[key]

    @cached_property
    def at_zero(self) -> float:
        """F(0), the loss of the model without coefficients at its optimal intercept."""
        return float(self.price(np.zeros(self.size))["value"])

    def price(self, u: Array) -> Sums:
        """Return the sums for a duality certificate at coefficients u, with the scores X'v.

        They are requested if they are not cached; ``HeldRows.answer`` describes them.
        """
        self.prefetch([u])
        return self._priced[_key(u)]

    def bend(self, columns: Columns, u: Array) -> TaylorModel:
        """Return the second-order Taylor model of F(w) = min_b f(X w + b) at coefficients u (m,).

        The model is over these columns; all other coefficients are 0. No request is sent if the
        cached model includes all these columns and is exact at u: the loss is quadratic, or the
        model was made at u.
        """
        model = self._model
        covers = np.isin(columns, model.columns).all()
        if not (covers and (self.quadratic or not model.move(columns, u).any())):
            # A model of a quadratic loss stays exact, so that its columns are kept, too.
            model_columns = np.union1d(columns, model.columns if self.quadratic else columns)
            point = np.zeros(model_columns.size)
            guess = np.array([model.shift_at(columns, u)])
            point[np.searchsorted(model_columns, columns)] = u
            first = self.ask("bend", model_columns, point[None], guess)[0]
            sums = self._sums_at_optimum("bend", model_columns, point, first, IN_STEPS)
            self._model = model = TaylorModel(model_columns, point, sums, self.intercept)
            # The key is that of ``_key`` for the coefficients of all columns.
            nonzero = np.flatnonzero(point)
            self._shifts[model_columns[nonzero].tobytes(), point[nonzero].tobytes()] = model.shift
        return model

    def lengths(self, columns: Columns) -> Array:
        """Return the Euclidean norm of each of these columns, over rows with a positive weight."""
        # Every request returns the squared norms of its columns; the coefficients do not matter.
        new = columns[np.isnan(self._squares[columns])]
        if new.size:
            self.ask("look", new, np.zeros((1, new.size)), np.zeros(1))
        norms: Array = np.sqrt(self._squares[columns])
        return norms

    def values_at(self, columns: Columns, W: Array, intercepts: Array) -> Array:
        """Return f at k points: coefficients W (k, m) of the m columns, and intercepts (k,)."""
        return np.array([sums["value"] for sums in self.ask("look", columns, W, intercepts)])

    # --- the loss ---------------------------------------------------------------------------

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return F(w) = min_b f(X w + b) for w = ``prediction``; y and weight are not used."""
        return float(self.price(prediction)["value"])

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient -X'v of F(w) = min_b f(X w + b) for w = ``prediction``.

        The dual vector is v = -f'. The arguments ``y`` and ``weight`` are not used.
        """
        slopes: Array = np.negative(self.price(prediction)["scores"])
        return slopes

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return an upper bound on the conjugate F*(factor F'(w)), w = ``prediction``.

        F(w) = min_b f(X w + b) is the loss f with the optimal intercept b. The bound is f*(factor
        v), summed over all rows, with v the dual vector at w. The machines return f* only at v
        (``full``) and at (1 - NEAR) v (``reduced``), with a small constant NEAR. Along v, f* is
        convex, and at most 0 at factor 0. Linear interpolation between these points therefore
        bounds it. The arguments ``y``, ``dual`` (the gradient) and ``weight`` are not used.
        """
        full, reduced = self.price(prediction)["conjugates"]
        # Interpolate between 1 - NEAR and 1; below, between (0, 0) and the value at 1 - NEAR.
        near = max(factor, 1.0 - NEAR)
        return float(factor / near * (full + (1.0 - near) / NEAR * (reduced - full)))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the sum of f'' over the rows at ``prediction`` (1 if it is 0), per coefficient.

        f'' is the second derivative of the loss by the prediction of a row. The result is an array
        (n_features,) of equal numbers. The arguments ``y`` and ``weight`` are not used.
        """
        return np.full(prediction.size, self.price(prediction)["curve"] or 1.0)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Raise TypeError for all arguments: a Hessian over all columns would need the rows."""
        raise TypeError(
            "rows that stay where they are answer about single columns: solve with "
            "ColumnGeneration, and a norm over columns"
        )

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error of the duality gap at ``prediction``.

        It is growth(n_rows) (F + max abs(f*) + ||v|| ||p||) plus the bounds of the machines, with
        the predictions p; growth(n) bounds the relative error of a sum of n terms. The arguments
        ``y``, ``dual`` and ``weight`` are not used.
        """
        sums = self.price(prediction)
        norm_product = math.sqrt(sums["steepness"] * sums["predicted"])  # ||v|| ||p||
        magnitude = sums["value"] + np.abs(sums["conjugates"]).max() + norm_product
        return float(growth(self.n_rows) * magnitude + sums["slack"])


class SummedOver(OfCoefficients):
    """The profiled loss F as a function of the coefficients of some columns, in their order.

    Values, gradients and Hessians come from the quadratic model of F, see ``Summed.bend``. In the
    methods of a loss, ``prediction`` (m,) has the coefficients; ``y`` and ``weight`` are not used.

    Parameters
    ----------
    whole : Summed
        F as a function of all coefficients.
    columns : (m,) int64
        The columns; all other coefficients are 0.
    """

    def __init__(self, whole: Summed, columns: Columns) -> None:
        """Store the profiled loss ``whole`` and the columns whose coefficients may be nonzero."""
        self.name: str = whole.name  # type: ignore[misc]
        self.whole = whole
        self.columns = columns

    def _around(self, u: Array) -> tuple[float, Array, Array]:
        """Return value, gradient (m,) and Hessian (m, m) of F at the coefficients u (m,).

        F(w) = min_b f(X w + b) is the loss f with the optimal intercept b, here as a function of
        the coefficients of m columns.
        """
        return self.whole.bend(self.columns, u).at(self.columns, u)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return F(w) = min_b f(X w + b) for w = ``prediction``; y and weight are not used.

        F(0) is cached, because a path begins there.
        """
        return self._around(prediction)[0] if prediction.any() else self.whole.at_zero

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient (m,) of F at w = ``prediction``; y and weight are not used."""
        return self._around(prediction)[1]

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return an upper bound on the conjugate, which needs no distributed request.

        With w = ``prediction`` and u = ``dual`` = F'(w), convexity of F* and F*(0) <= 0 give
        F*(factor u) <= factor (<u, w> - F(w)) for 0 <= factor <= 1. ``y`` and ``weight`` are those
        of the interface of losses; F has its own.
        """
        return factor * (float(dual @ prediction) - self.value(y, prediction, weight))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return sum_k abs(H_jk) for each column j, with the Hessian H of F at ``prediction``.

        A diagonal matrix with these entries is at least H. ``y`` and ``weight`` are not used.
        """
        bound: Array = np.abs(self._around(prediction)[2]).sum(axis=1)
        return bound

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c and K with H = c I - K K' for the Hessian H of F at ``prediction``.

        The scalar c, at least twice the largest eigenvalue of H, is returned as a vector (m,). K
        (m, m) is the Cholesky factor of c I - H. The arguments ``y`` and ``weight`` are not used.
        """
        H = self._around(prediction)[2]
        c = 2.0 * float(np.abs(H).sum(axis=1).max(initial=0.0)) or 1.0
        return np.full(H.shape[0], c), cholesky(c * np.eye(H.shape[0]) - H, lower=True)


def _key(u: Array) -> tuple[bytes, bytes]:
    """Return a dictionary key for the coefficients u: its nonzero positions and values."""
    columns = np.flatnonzero(u)
    return columns.tobytes(), u[columns].tobytes()


class Coefficients(SparseDesign):
    """The identity matrix as a design, so that predictions are the coefficients.

    ``row_access`` sends requests to the machines that have the rows.

    Parameters
    ----------
    loss : Summed
        The profiled loss F.
    dtype : dtype
        Type of the entries.
    reads_at_once : bool
        Whether regularization levels are solved together, with a shared pool of columns.
    """

    def __init__(self, loss: Summed, dtype: Any, reads_at_once: bool) -> None:
        """Make the identity matrix of type ``dtype`` for ``loss``, the profiled loss F.

        ``reads_at_once`` says whether several alphas are solved together.
        """
        super().__init__(sp.eye_array(loss.size, format="csc", dtype=dtype))
        self.row_access = SummedRows(loss)
        self.traits = replace(self.traits, reads_at_once=reads_at_once)


class CoefficientBlock(DenseBlock):
    """Columns of the identity, for a loss that sends a request for each value.

    Compiled solvers must not use it: they evaluate the loss many times for one Hessian, and here
    each evaluation is a request, which returns a new Hessian as well.
    """


@columns_for_kernel.register
def _of_coefficients(block: CoefficientBlock) -> None:
    """Return None: compiled kernels get no columns of ``block``."""


class SummedRows(RowAccess):
    """Access of solvers to the rows of a distributed problem, which returns sums over them only.

    ``loss`` is the profiled loss F. A ``prediction`` is a vector of coefficients (n_features,).
    """

    def __init__(self, loss: Summed) -> None:
        """Store the profiled loss, which sends the requests for sums."""
        self.loss = loss

    @property
    def sent(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of requests so far, and total bytes of requests and answers."""
        return self.loss.sent

    def prefetch(self, predictions: Sequence[Array]) -> None:
        """Request and cache the sums that proofs need at several points, the ``predictions``."""
        self.loss.prefetch(predictions)

    def restrict(self, problem: Problem, block: Design) -> Problem:
        """Return the ``problem`` restricted to the features of ``block``, columns of the identity.

        Its loss is the quadratic model of F over these features. A feature may be in several
        columns of the block.
        """
        # The loss does not use targets and sample weights, for which the problem has 0 and 1.
        features, positions = _features(block)
        return Problem(
            SummedOver(self.loss, features),
            CachedBlock(CoefficientBlock(np.eye(features.size)[:, positions])),
            np.zeros(features.size),
            np.ones(features.size),
            problem.regularizer,
            problem.tau,
            deadline=problem.deadline,
        )

    def intercept(self, prediction: Array) -> float:
        """Return the optimal intercept at the coefficients ``prediction``."""
        return float(self.loss.price(prediction)["shift"])

    def over_rows(
        self, design: Design, columns: Columns, prediction: Array
    ) -> tuple[Array, float, int]:
        """Return column norms, the norm of v = -f' at ``prediction``, and the number of rows.

        All are over the remote rows. The column norms (m,) are of the m columns of ``design``.
        """
        features, positions = _features(design.gather(columns))
        slope = math.sqrt(self.loss.price(prediction)["steepness"])
        return self.loss.lengths(features)[positions], slope, self.loss.n_rows


def _features(block: Any) -> tuple[Columns, Columns]:
    """Return the features in ``block``, and for each of its columns the position of its feature.

    The block has columns of the identity; the column of feature j has its 1 in row j.
    """
    base, positions = distinct_columns(block)
    return base.stored().indices.astype(np.int64), positions


def problem_of_sums(problem: Problem, count: int, send: Callable[[Sums], Sums]) -> Problem:
    """Return an equivalent problem over distributed sums, which needs no vector over rows.

    Parameters
    ----------
    problem : Problem
        The problem over the rows.
    count : int
        Number of machines that have rows.
    send : callable
        Sends a request to all machines and returns the sum of their answers; see ``Summed``.
    """
    loss = Summed(problem, count, send)
    # The loss does not use targets and sample weights, for which the problem has 0 and 1.
    return Problem(
        loss,
        Coefficients(loss, problem.design.dtype, problem.design.traits.reads_at_once),
        np.zeros(loss.size),
        np.ones(loss.size),
        problem.regularizer,
        problem.tau,
        deadline=problem.deadline,
        origin=problem.origin,
    )


def sums_suffice(problem: Problem) -> bool:
    """Return whether the problem can be solved from sums over rows.

    This needs a smooth loss that is a sum over rows (one prediction per row, no unpenalized
    columns) and a norm that depends on the columns one by one or in groups, without a metric.
    """
    # A norm with a lift (a simpler norm over more columns) must only repeat columns.
    loss = problem.loss
    norm = problem.regularizer.norm
    n_columns = problem.design.shape[1]
    lift = norm.lift(n_columns)
    is_by_column = is_restrictable(norm, n_columns) if lift is None else lift.expansion.repeats
    # ``coupled`` counts the predictions of a row; only losses with kinks have a smoothed form.
    is_smooth = loss.coupled == 1 and loss.smoothed(1.0) is None
    return is_smooth and free_columns(loss) is None and problem.metric is None and is_by_column
