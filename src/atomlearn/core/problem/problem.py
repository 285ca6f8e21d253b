"""Problem: loss + design + norm + form, with the objective, the gradient and the certificate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn.core.data.lifted import Lifted
from atomlearn.core.data.scores import ShiftedScores
from atomlearn.core.interfaces import Array, Columns, Deadline, Design, Lift, Loss, Norm, Scores
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.interfaces.excess import Excess
from atomlearn.core.losses import Offset, pieces
from atomlearn.core.losses.shift import optimal_shift, without_surplus
from atomlearn.core.problem.checks import check_loss, check_offset, check_tau, check_weight
from atomlearn.core.problem.free import freed, raised_by_floats
from atomlearn.core.problem.pricing import Pricing, certificate_of, priced
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.rounding import EPS, Lengths, Measured, of_shift, rounding

#: What gauges that an iteration finds, and points that count as inside of a ball or of bounds, may
#: take off a gap, relative to the objective.
UNPROVED = 1e-5


@dataclass(frozen=True, slots=True)
class Problem:
    """min over w, b of  f(X w + b) + (tau/2) ||w||^2 + R(w),  f(z) = sum_i s_i loss(y_i, z_i).

    y, weight : (n_samples,) float64, checked; ``fit_intercept`` adds the unpenalized b;
    ``offset`` (n_samples,) is added to all predictions, and ``free`` are columns that nothing
    penalizes: both are parts of ``loss`` (``losses.Offset``, ``losses.FreeColumns``, which has the
    intercept too), so that f is minimized over them at every X w, and solvers need not know.
    ``deadline``, set by ``run``, is when masters and long steps should return what they have;
    ``metric`` M makes the ridge term (tau/2) w'Mw: U'U, where w are weights of atoms U.
    ``origin`` was taken off the targets, and is added to the intercept that is given back.
    ``measured`` are the lengths of columns, which bounds on rounding take.
    Built by ``Problem.build`` (checks everything) and ``restricted_to`` (checks nothing).

    References
    ----------
    [V] section 2 and [L] section 3 for the problem, its dual and the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem
    >>> X, y = designs.as_design(np.eye(2)), np.array([3.0, 1.0])
    >>> penalty = problem.Regularizer(norms.L1(), "penalized", 1.0)
    >>> task = problem.Problem.build(X, y, losses.as_loss("squared"), penalty)
    >>> gap = task.price(None, np.array([2.0, 0.0]), np.array([2.0, 0.0])).certificate.gap
    >>> 0.0 < gap < 1e-13  # the optimum, up to rounding
    True
    """

    loss: Loss
    design: Design
    y: Array
    weight: Array
    regularizer: Regularizer
    tau: float = 0.0
    fit_intercept: bool = False
    deadline: Deadline = field(default_factory=Deadline.never)
    metric: Array | None = None
    origin: float = 0.0
    offset: Array | None = None
    free: Columns | None = None
    measured: Measured = field(default_factory=Measured, compare=False, repr=False)

    @classmethod
    def build(
        cls,
        design: Design,
        y: object,
        loss: Loss,
        regularizer: Regularizer,
        *,
        tau: float = 0.0,
        fit_intercept: bool = False,
        sample_weight: object = None,
        offset: object = None,
        unpenalized: object = None,
    ) -> Problem:
        """Check every part, and that the parts fit together, before any arithmetic."""
        n_samples = design.shape[0]
        target = loss.check_target(y)
        if target.shape[0] != n_samples:
            raise ValueError(
                f"X has {n_samples} rows and y has {target.shape[0]} targets; "
                "they must describe the same samples"
            )
        check_tau(tau)
        weight = check_weight(sample_weight, n_samples)
        problem = cls.of_checked(design, target, weight, loss, regularizer, fit_intercept)
        if tau:
            problem = replace(problem, tau=float(tau))
        return problem.with_offset(offset).freed(unpenalized)

    @classmethod
    def of_checked(
        cls, design: Design, y: Array, s: Array, loss: Loss, penalty: Regularizer, intercept: bool
    ) -> Problem:
        """Return the problem of targets and weights that were checked by themselves."""
        norm = penalty.norm.on(design.shape[1], design.matrix_shape)
        check_loss(loss, y, s, intercept)
        return cls(loss, design, y, s, penalty.of(norm), fit_intercept=bool(intercept))

    def with_offset(self, offset: object) -> Problem:
        """Return the problem with numbers added to all predictions; itself where None."""
        if offset is None:
            return self
        numbers, free = check_offset(offset, self.y.size), self.loss.free
        loss = Offset(self.plain_loss, numbers)
        return replace(self, loss=loss if free is None else free.around(loss), offset=numbers)

    def freed(self, unpenalized: object) -> Problem:
        """Return the problem with these columns free of any penalty, beside those it has."""
        return freed(self, unpenalized)

    def with_norm(self, norm: Norm) -> Problem:
        """Return the problem with another norm, and the columns free that it leaves free."""
        norm = norm.on(self.design.shape[1], self.design.matrix_shape)
        return replace(self, regularizer=replace(self.regularizer, norm=norm)).freed(None)

    def at(self, amount: float) -> Problem:
        """Return the problem at another level, or of another radius."""
        return replace(self, regularizer=replace(self.regularizer, amount=amount))

    def until(self, deadline: Deadline) -> Problem:
        """Return the problem with another deadline; itself where that is the one it has."""
        return self if deadline == self.deadline else replace(self, deadline=deadline)

    def of_rows(self, rows: Columns, design: Design, weight: Array) -> Problem:
        """Return the problem of these samples, whose data is ``design``, with other weights."""
        offset = None if self.offset is None else self.offset[rows]
        return replace(
            self,
            loss=self.loss.part(rows),
            design=design,
            y=self.y[rows],
            weight=weight,
            offset=offset,
        )

    def restricted_to(self, block: Design, columns: Columns) -> Problem:
        """Return the same problem over the given columns, whose data is ``block``."""
        norm = self.regularizer.norm
        restricted = norm.restrict(columns, self.design.shape[1])
        if restricted is None:
            raise TypeError(
                f"{type(norm).__name__} cannot be restricted to a few columns; "
                "use a solver over its atoms, or FISTA over all columns"
            )
        return replace(self, design=block, regularizer=self.regularizer.of(restricted))

    def lifted(self) -> tuple[Problem, Lift] | None:
        """Return the same problem over lifted coordinates, and the way back; None where no need.

        min over w of f(X w) + R(inf { inner(u) : L u = w }) is min over u of f(X L u) +
        R(inner(u)): a point and a certificate of the second are a point, a bound on its objective
        and the same certificate of the first.
        """
        norm = self.regularizer.norm
        lift = norm.lift(self.design.shape[1])
        if lift is None:
            return None
        if self.tau:
            raise ValueError(
                f"tau > 0 mixes the overlapping parts of {type(norm).__name__}, which are solved "
                "for apart; use tau=0, or a solver over atoms such as solvers.AtomGeneration()"
            )
        design = Lifted(self.design, lift.expansion)
        regularizer = replace(self.regularizer, norm=lift.norm)
        return replace(self, design=design, regularizer=regularizer), lift

    def entered(self, lifts: bool) -> tuple[Problem, Lift | None]:
        """Return the problem that a solver is given, which may work in lifted coordinates."""
        return (self.lifted() if lifts else None) or (self, None)

    def centered(self) -> Problem:
        """Return the problem over y - c, c in the middle of y, where the intercept takes c up.

        The same problem, as long as ``origin`` is added to the intercept; but residuals of targets
        such as 1e6 + noise lose no digits.
        """
        if not self.loss.translates:
            return self
        loss, y, free, c = self.loss, self.y, self.loss.free, 0.0
        if self.offset is not None:
            loss, y = loss.bare if free is None else free.around(loss.bare), y - self.offset
        if self.fit_intercept or (free is not None and free.intercept):
            c = optimal_shift(loss.bare, y, self.weight, np.zeros(y.size))
        return replace(self, loss=loss, y=y - c, origin=self.origin + c)

    def given_back(
        self, certificate: Certificate, intercept: float, prediction: Array
    ) -> Certificate:
        """Return the certificate of the point as it is given back, all of it as floats."""
        if self.loss.free is not None:
            return certificate.widened(0.0, raised_by_floats(self, prediction))
        if not self.origin:
            return certificate
        rounded = intercept + self.origin
        shift = (rounded - self.origin) - intercept
        if self.loss.smoothed(1.0) is not None:
            return certificate.widened(0.0, abs(shift) * float(self.weight.sum()))
        return certificate.widened(0.0, of_shift(self, shift))

    @property
    def plain_loss(self) -> Loss:
        """The loss without free columns: that at given coefficients of them."""
        return self.loss if self.loss.free is None else self.loss.free.inner

    @property
    def counted(self) -> Array | None:
        """1 for each sample that has a weight and 0 for others, (n_samples,); None where all do."""
        return None if self.weight.all() else (self.weight > 0.0).astype(np.float64)

    # --- values -----------------------------------------------------------------------------

    def objective(self, weights: Array, prediction: Array, gauge: float | None = None) -> float:
        """Return F at a point whose predictions (intercept included) are given."""
        if gauge is None:
            gauge = self.regularizer.norm.value(weights)
        smooth = self.loss_value(prediction)
        if self.tau:
            smooth += 0.5 * float(weights @ self.ridge_slope(weights))
        return smooth + self.regularizer.value(gauge)

    def ridge_slope(self, weights: Array) -> Array:
        """Return the gradient of the ridge term, tau w or tau M w."""
        return self.tau * (weights if self.metric is None else self.metric @ weights)

    def loss_value(self, linear: Array, shift: float = 0.0) -> float:
        """Return f(linear + shift), without further arrays of n_samples numbers."""
        return pieces.value(self.loss, self.y, linear, self.weight, shift)

    def loss_gradient(self, linear: Array, shift: float = 0.0, out: Array | None = None) -> Array:
        """Return f'(linear + shift), (n_samples,); in ``out`` where it is given."""
        return pieces.gradient(self.loss, self.y, linear, self.weight, shift, out)

    def loss_conjugate(self, dual: Array, factor: float, prediction: Array | None = None) -> float:
        """Return f*(factor dual); ``prediction``: where -dual is f', which some losses need."""
        if prediction is not None and self.loss.coupled == 0:
            y, s = self.y, self.weight
            return self.loss.conjugate_along(y, prediction, -dual, s, -factor)
        return pieces.conjugate(self.loss, self.y, dual, self.weight, factor)

    @property
    def negligible(self) -> float:
        """Objective that rounding cannot tell from 0: that of residuals of a few eps times y.

        Of labels a thousandth of eps: they are told apart without fail, and losses only fade out.
        """
        least = 1e-3 * EPS if self.loss.task == "classification" else 64.0 * EPS**2
        return least * self.loss_at_zero()

    def is_perfect(self, certificate: Certificate) -> bool:
        """Return whether the objective is 0 up to rounding: so is, then, what is left of the gap.

        It may be more than negligible where what floats lose is more, as where columns are far from
        zero, but is then that of residuals of 1e-12 times y.
        """
        lost = min(certificate.rounding, EPS**1.5 * self.loss_at_zero())
        return bool(certificate.objective <= max(self.negligible, lost))

    def loss_at_zero(self) -> float:
        """Return f(0), the scale of what is negligible, without what is free."""
        return self.measured.loss_at_zero(self.loss, self.y, self.weight)

    def inside(self, columns: Columns | None, weights: Array) -> Array:
        """Return the weights of a point, shrunk into the ball where the form has one."""
        if self.regularizer.form != "constrained" or not weights.size:
            return weights
        return self.regularizer.inside(weights, self.gauge(columns, weights))

    def gauge(self, columns: Columns | None, weights: Array) -> float:
        """Return the gauge of the point with these weights on ``columns`` (None: all of them)."""
        norm, n_features = self.regularizer.norm, self.design.shape[1]
        if columns is not None:
            restricted = norm.restrict(columns, n_features)
            if restricted is not None:
                return restricted.value(weights)
            dense = np.zeros(n_features)
            dense[columns] = weights
            weights = dense
        return norm.value(weights)

    def negative_gradient(self, prediction: Array, out: Array | None = None) -> Array:
        """Return v = -f'(z), with sum(v) = 0 where there is an intercept.

        At the optimal intercept the sum vanishes but for rounding. What is left is taken off the
        side that outweighs the other: entries only shrink towards 0, so -v stays in the domain of
        f* and is a feasible dual point, which makes the gap a bound whatever b is.
        """
        v = self.loss_gradient(prediction, out=out)
        np.negative(v, out=v)
        return without_surplus(v) if self.fit_intercept else v

    def optimal_intercept(self, linear: Array, start: float = 0.0) -> float:
        """Return argmin_b f(linear + b) by safeguarded Newton steps, O(n_samples) each.

        The certificate needs b to be optimal: its derivative vanishes to rounding. Where the
        minimum lies at infinity (one class only) b stops where the loss has no slope left.
        """
        if not self.fit_intercept:
            return 0.0
        return optimal_shift(self.loss, self.y, self.weight, linear, start)

    def price(
        self,
        columns: Columns | None,
        weights: Array,
        prediction: Array,
        *,
        gauge: float | None = None,
        tolerance: float = 0.0,
        lengths: Lengths | None = None,
        scores: Scores | None = None,
    ) -> Pricing:
        """Return the scores at a point and its certificate: one pass over the data.

        ``columns`` None means all columns, in order; ``prediction`` is X w + b with the optimal b;
        ``gauge``, ``tolerance`` : see ``pricing.priced``. The gap holds what rounding may have
        hidden, for which ``lengths`` of columns are measured, once, where none are given.
        ``scores`` : those of ``negative_gradient(prediction)``, where they were formed together
        with others'.
        """
        v = self.negative_gradient(prediction)
        price = priced(
            self,
            columns,
            weights,
            prediction,
            v,
            self.design.scores(v) if scores is None else scores,
            gauge=gauge,
            tolerance=tolerance,
        )
        if lengths is None:
            used = np.flatnonzero(weights)
            columns, weights = used if columns is None else columns[used], weights[used]
            lengths = self.measured.of(self, columns)
        at = (weights, prediction, v)
        price.certificate = self.rounded(price.certificate, *at, columns, lengths)
        return price

    def rounded(
        self,
        certificate: Certificate,
        weights: Array,
        prediction: Array,
        dual: Array,
        columns: Columns | None = None,
        lengths: Lengths | None = None,
    ) -> Certificate:
        """Return the certificate of this point with what rounding may have hidden in its gap."""
        at = columns, weights, prediction, dual, certificate, lengths
        slack = rounding(self, *at)
        if certificate.shortfall > slack + UNPROVED * abs(certificate.objective):
            raise ValueError(
                f"the norm {self.regularizer.norm!r} proves nothing: its value(w) and polar(z) "
                f"make the duality gap {-certificate.shortfall:.3g}, below zero by more than "
                f"rounding, which is {slack:.3g}; check that <z, w> <= value(w) * polar(z) for "
                "all w and z"
            )
        # What was below zero was lost in rounding, whatever the bound on it says.
        return certificate.widened(max(slack, certificate.shortfall))

    def certificate(
        self,
        weights: Array,
        prediction: Array,
        dual: Array,
        gauge: float,
        polar: tuple[float, float],
        excess: Excess | None = None,
    ) -> Certificate:
        """Return objective and gap of this very point from bounds on the polar of its scores.

        With z = X'v - tau w, Fenchel's inequality for f and R at the dual point -v gives
        gap = f(X w + b) + f*(-v) + tau ||w||^2 + R(w) + R*(z), for every v = ``dual`` in the
        domain with sum(v) = 0 where b is free. At v = -f'(X w + b) it is the
        <g, w> + R(w) + R*(-g) of PAPERS ([V] section 2, [L] section 3). ``gauge`` is gauge(w), or
        an upper bound such as the sum of atom weights, which makes objective and gap bounds.
        ``polar`` : lower and upper bound on gauge°(z); ``excess`` : of bounds on coefficients,
        with which polars are those of the sides that have none.
        """
        return certificate_of(self, weights, prediction, dual, gauge, polar, excess)

    def shifted(self, scores: Scores, columns: Columns | None, weights: Array) -> Scores:
        """Return the scores of the whole smooth part: X'v - tau w."""
        if not self.tau or not weights.size:
            return scores
        slope = self.ridge_slope(weights)
        if columns is None:
            columns = np.flatnonzero(slope)
            slope = slope[columns]
        return ShiftedScores(scores, columns, slope)
