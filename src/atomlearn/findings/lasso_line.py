"""The lasso's solution path along a line of targets y + t move: piecewise linear in t, with proofs.

    min over b, g of  1/2 sum_i w_i (y_i - x_i'b - z_i'g)^2 + sum_j price_j |b_j|

Let A be the active columns, s their signs, K = X'W X and q = X'W y, both after projecting out the
unpenalized columns. Then b_A = K_AA^-1 (q_A - price_A s), and the scores of all columns are
q - K_A b_A; both are linear in q, and so in t. A linear piece of the path is valid as long as
s_k b_k > 0 on A and |score_j| < price_j outside A. Each piece is proved with a bound on the
rounding of the sums; intervals of t without a proved piece are undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg as la

from atomlearn._support import growth
from atomlearn.core import Array, Columns, Squared, is_quadratic
from atomlearn.findings.one_step import MOST_STEPS, FitData

#: Maximum number of pieces on each side of t = 0, and of pivots to the solution at t = 0.
MOST_PIECES = 500


@dataclass(frozen=True, slots=True)
class PathPiece:
    """A linear piece of the solution path, valid while all of its linear forms are positive.

    Attributes
    ----------
    active : (m,) int64
        Active columns.
    signs : (m,) float64
        Their signs.
    weights : (2, m) float64
        Their coefficients at t = 0, and slopes in t.
    forms : (2, m + 2 p) float64
        Values at t = 0 and slopes of the forms: s_j b_j of the active columns, then price_j -
        score_j and price_j + score_j of all p columns.
    ends : tuple[float, float]
        The interval of t >= 0 in which all forms exceed the bound on their rounding.
    """

    active: Columns
    signs: Array
    weights: Array
    forms: Array
    ends: tuple[float, float]

    def following(self, start: float) -> tuple[float, Columns, Array]:
        """Return the t > ``start`` where the piece ends, with active columns and signs beyond it.

        The first form that reaches 0 ends the piece. If it is s_j b_j, column j leaves; otherwise
        column j joins, with the sign of its score.
        """
        value, slope = self.forms
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = np.maximum(np.where(slope < 0, -value / slope, np.inf), start)
        first = int(np.argmin(crossings))
        n_active = self.active.size
        end = float(crossings[first])
        if first < n_active:
            return end, np.delete(self.active, first), np.delete(self.signs, first)
        # After the n_active forms s_j b_j there are p forms for scores that reach +price, then p
        # for scores that reach -price.
        is_negative, column = divmod(first - n_active, (value.size - n_active) // 2)
        return end, np.append(self.active, column), np.append(self.signs, 1.0 - 2.0 * is_negative)


@dataclass
class LassoLine:
    """Solution paths of a lasso at fixed penalties along lines of targets y + t move.

    Parameters
    ----------
    data : FitData
        The data, for the squared loss.
    price : (p,) float64
        The l1 penalty of each column, times n. Unpenalized columns are projected out; their price
        is infinite, so that they are never among the active columns.
    columns, signs : (m,) int64, (m,) float64
        Active columns at t = 0 and their signs, at least approximately. ``columns`` then becomes
        the exact ones and the unpenalized ones.
    q : (p,) float64
        X'W y after projecting out the unpenalized columns; computed.
    first : PathPiece
        The piece of the path at t = 0; computed.
    """

    data: FitData
    price: Array
    columns: Columns
    signs: Array
    q: Array = field(init=False)
    first: PathPiece = field(init=False)

    def __post_init__(self) -> None:
        """Compute the scores q of the targets and the piece at t = 0."""
        y = self.data.y[:, None]
        # Norms of the columns (p,) and of the projected targets, for bounds on rounding.
        self._lengths = np.sqrt(self.data.design.squared_norms(self.data.weight))
        self._target_norm = float(np.linalg.norm(self.data.projected(y)))
        # Rows of K for all columns that were active so far, and the row of each column, -1 if it
        # has none yet. New rows share one pass over X.
        self._K_rows = np.zeros((0, self.price.size))
        self._row_of_column = np.full(self.price.size, -1)
        self.q = self._scores(y)[0]
        self.first = self._piece_at_zero(self.columns, self.signs)
        self.columns = np.union1d(self.first.active, self.data.free)

    @property
    def prediction(self) -> Array:
        """The predictions of the lasso, (n,)."""
        # The residuals at t = 0, the first of two columns; no target moves.
        residuals = self.residual_line(self.first, np.zeros(self.data.y.size))[:, 0]
        return np.asarray(self.data.y - residuals / np.sqrt(self.data.weight))

    def residual_line(self, piece: PathPiece, move: Array) -> Array:
        """Return W^(1/2) times the residuals, (n, 2): at t = 0, and slopes in t.

        piece : a piece of the path. move : (n,) the change of the targets per unit of t.
        """
        targets = np.column_stack([self.data.y, move])
        return self.data.projected(targets - self.data.columns_of(piece.active) @ piece.weights.T)

    def _scores(self, V: Array) -> Array:
        """Return X'V (k, p) for k vectors V (n, k), with the unpenalized columns projected out."""
        scores = self.data.design.scores_many(
            np.sqrt(self.data.weight)[:, None] * self.data.projected(V)
        )
        return np.stack([scores_of_vector.full() for scores_of_vector in scores])

    def _positions(self, columns: Columns) -> Columns:
        """Return the rows of these columns in the stored part of K, which is extended if needed."""
        new = columns[self._row_of_column[columns] < 0]
        if new.size:
            self._row_of_column[new] = len(self._K_rows) + np.arange(new.size)
            self._K_rows = np.concatenate([self._K_rows, self._scores(self.data.columns_of(new))])
        return self._row_of_column[columns]

    def _piece(
        self, active: Columns, signs: Array, score_slopes: Array, move_norm: float
    ) -> PathPiece:
        """Return the piece with these active columns and signs, for X'W y = q + t score_slopes.

        active : (m,) columns. signs : (m,). score_slopes : (p,) the change of X'W y per unit of t.
        move_norm : the norm of the change of the targets per unit of t, for the bounds on rounding.
        Locals with two rows are linear in t: row 0 has the values at t = 0, row 1 the slopes.
        """
        # b_A = K_AA^-1 (q_A - price_A s), at t = 0 and its slope.
        positions = self._positions(active)
        inverse = self._inverse(self._K_rows[positions][:, active], active)
        b = np.stack([self.q[active] - self.price[active] * signs, score_slopes[active]]) @ inverse
        # The scores q - K_A b_A of all columns.
        stored_weights = np.zeros((2, len(self._K_rows)))
        stored_weights[:, positions] = b
        scores = np.stack([self.q, score_slopes]) - stored_weights @ self._K_rows
        # Active scores equal their price by construction; 0 keeps their forms positive.
        scores[:, active] = 0.0
        prices = np.stack([self.price, np.zeros(self.price.size)])
        forms = np.concatenate([signs * b, prices - scores, prices + scores], axis=1)
        # Bounds on the rounding of each form, relative to the norm of the targets and of X b. The
        # norm is linear in t: ``magnitudes`` are its value at t = 0 and its slope.
        magnitudes = [self._target_norm, move_norm] + np.abs(b) @ self._lengths[active]
        weight_errors = np.abs(inverse) @ self._lengths[active]
        score_errors = (1.0 + np.sqrt(weight_errors @ self._lengths[active])) * self._lengths
        bounds = (
            2.0
            * growth(self.data.y.size)
            * np.concatenate([weight_errors, score_errors, score_errors])
        )
        # The piece is valid while value + t slope > 0 for each form.
        value, slope = forms - np.outer(magnitudes, bounds)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = -value / slope
        low = float(np.max(ends[slope > 0], initial=0.0))
        high = float(np.min(ends[slope < 0], initial=np.inf))
        # A form that is constant and not positive is violated at all t.
        is_empty = (value <= 0)[slope == 0].any()
        return PathPiece(active, signs, b, forms, (0.0, 0.0) if is_empty else (low, high))

    def _inverse(self, K: Array, columns: Columns) -> Array:
        """Return K^-1 of these columns; raise LinAlgError, naming them, if K is singular."""
        if not columns.size:
            return K
        # Scaled to a diagonal of 1, so that the eigenvalues do not depend on the units of columns.
        lengths = np.sqrt(np.abs(np.diag(K)))
        lengths[lengths == 0.0] = 1.0
        scaled = K / lengths / lengths[:, None]
        eigenvalues, vectors = la.eigh(scaled)
        if eigenvalues[0] <= columns.size * growth(self.data.y.size) * eigenvalues[-1]:
            dependent = np.sort(columns[np.abs(vectors[:, 0]) > 1e-6]).tolist()
            raise la.LinAlgError(f"columns {dependent} depend on each other; leave one of them out")
        return np.asarray(la.inv(scaled) / lengths / lengths[:, None])

    def _piece_at_zero(self, active: Columns, signs: Array) -> PathPiece:
        """Return the piece at t = 0, by pivoting from these active columns and their signs.

        Raises ValueError if the solution is not unique, or not found in MOST_PIECES pivots.
        """
        for _ in range(MOST_PIECES):
            try:
                piece = self._piece(active, signs, np.zeros(self.price.size), 0.0)
            except la.LinAlgError as error:
                raise ValueError(f"the lasso has no single solution: {error}") from None
            # Columns of the wrong sign are removed first; then columns whose scores exceed their
            # prices are added.
            has_sign = signs * piece.weights[0] > 0
            # The rows are price - score and price + score of all columns. Active columns have the
            # score 0 here, so that they do not enter again.
            slacks = piece.forms[0, active.size :].reshape(2, -1)
            entering = np.flatnonzero(slacks.min(axis=0) < 0) if has_sign.all() else active[:0]
            if has_sign.all() and not entering.size:
                return piece
            active = np.append(active[has_sign], entering)
            signs = np.append(signs[has_sign], np.where(slacks[0, entering] < 0, 1.0, -1.0))
        raise ValueError("the lasso could not be solved exactly; fit it to a smaller tol")

    def pieces(self, move: Array, reach: float) -> Iterator[PathPiece]:
        """Yield the pieces of targets y + t move, from t = 0 up to ``reach``.

        move : (n,) the change of the targets per unit of t. The pieces end earlier after
        MOST_PIECES pieces, or if active columns are linearly dependent.
        """
        score_slopes = self._scores(move[:, None])[0]
        move_norm = float(np.linalg.norm(self.data.projected(move[:, None])))
        support = self.first.active
        signs = self.first.signs
        position = 0.0
        for _ in range(MOST_PIECES):
            try:
                piece = self._piece(support, signs, score_slopes, move_norm)
            except la.LinAlgError:
                break
            yield piece
            position, support, signs = piece.following(position)
            if position >= reach:
                break

    def same_selection(self, move: Array, reach: float) -> tuple[Array, Array]:
        """Return the intervals of t in which the same columns are selected, and undecided ones.

        Both are (m, 2), for targets y + t move. move : (n,) the direction. The path is followed for
        |t| up to ``reach``; t beyond the last piece is undecided.
        """
        ends_of_pieces = list[list[float]]()
        is_same = []
        # Negative t are positive ones along -move.
        for side in (1.0, -1.0):
            for piece in self.pieces(side * move, reach):
                # The first piece of each direction must be proved from t = 0 on.
                if piece.active is self.first.active and not piece.ends[0] == 0.0 < piece.ends[1]:
                    raise ValueError(
                        "which columns the lasso selects is not proved: a coefficient or a score "
                        "is at its bound up to rounding; change alpha a little"
                    )
                ends_of_pieces.append(sorted(side * end for end in piece.ends))
                is_same.append(np.array_equal(np.sort(piece.active), np.sort(self.first.active)))
        intervals = np.array(ends_of_pieces)
        return np.unique(intervals[np.array(is_same)], axis=0), _complement(
            intervals[intervals[:, 0] < intervals[:, 1]]
        )


def _complement(known: Array) -> Array:
    """Return the complement (k, 2) of a union of intervals ``known`` (m, 2) on the real line."""
    known = known[np.argsort(known[:, 0], kind="stable")]
    # A gap leads from the largest end so far to the next start.
    low = np.append(-np.inf, np.maximum.accumulate(known[:, 1]))
    complement = np.column_stack([low, np.append(known[:, 0], np.inf)])
    return complement[complement[:, 0] < complement[:, 1]]


def lasso_line(
    data: FitData, price: Array, columns: Columns, signs: Array, prediction: Array
) -> LassoLine:
    """Return the ``LassoLine`` of a fit, started from its active columns and their signs.

    data : the data of the fit. price : (p,) l1 penalties. columns, signs : the active columns and
    the signs of their coefficients, (m,) each. prediction : (n,) linear predictor of the fit.
    Losses other than the squared one are replaced by a weighted least-squares lasso with the same
    solution. Its weights and targets are found by iteratively reweighted least squares.
    """
    if is_quadratic(data.loss):
        return LassoLine(data, price, columns, signs)
    for _ in range(MOST_STEPS):
        # Least squares with the weights W and the targets ``response`` is the quadratic model of
        # the loss at the prediction.
        W = data.loss.curvature(data.y, prediction, data.weight)
        response = prediction - data.loss.gradient(data.y, prediction, data.weight) / W
        line = LassoLine(replace(data, loss=Squared(), weight=W, y=response), price, columns, signs)
        columns = line.first.active
        signs = line.first.signs
        previous = prediction
        prediction = line.prediction
        if np.max(np.abs(prediction - previous)) <= 1e-10 * np.max(np.abs(prediction)):
            return line
    raise ValueError("the fit could not be solved exactly; fit it to a smaller tol")
