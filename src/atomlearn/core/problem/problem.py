"""Problem: loss + design + norm + form, and how one problem is made of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, Self

import numpy as np

from atomlearn.core.data.lifted import Lifted
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Array, Columns, Deadline, Design, Lift, Loss, Norm
from atomlearn.core.interfaces.certificate import Certificate
from atomlearn.core.interfaces.forwarding import Derived, Forwarding, unwrapped
from atomlearn.core.interfaces.numbers import check_offset, check_weight
from atomlearn.core.losses.around import Offset
from atomlearn.core.losses.free_columns import FreeColumns
from atomlearn.core.losses.shift import optimal_shift
from atomlearn.core.problem.checks import check_free, check_loss, check_tau
from atomlearn.core.problem.objective import Objective
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.rounding import growth, less


@dataclass(frozen=True)
class Problem(Objective):
    """min over w, b of  f(X w + b) + (tau/2) ||w||^2 + R(w),  f(z) = sum_i s_i loss(y_i, z_i).

    y, weight : (n_samples,) float64, checked; ``fit_intercept`` adds the unpenalized b;
    ``offset`` (n_samples,) is added to all predictions, and ``free`` are columns that nothing
    penalizes: both are parts of ``loss`` (``Offset``, ``FreeColumns``, which has the
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

    deadline: Deadline = field(default_factory=Deadline)
    origin: float = 0.0
    offset: Array | None = None
    free: Columns | None = None

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
        # Where targets lie with the rows, none are given.
        target = np.ones(n_samples) if y is None else loss.check_target(y)
        if target.shape[0] != n_samples:
            raise ValueError(
                f"X has {n_samples} rows and y has {target.shape[0]} targets; "
                "they must describe the same samples"
            )
        check_tau(tau)
        weight = check_weight(sample_weight, n_samples)
        problem = cls.of_checked(design, target, weight, loss, regularizer, fit_intercept)
        if tau:
            problem = problem.changed(tau=float(tau))
        problem = problem.with_offset(offset).freed(unpenalized)
        if y is not None:
            return problem
        summed = over_sums(design, problem.changed(y=np.zeros(0)))
        if not summed.y.size:
            loss.check_target(y)  # which tells what targets it takes
        return summed

    @classmethod
    def of_checked(
        cls, design: Design, y: Array, s: Array, loss: Loss, penalty: Regularizer, intercept: bool
    ) -> Problem:
        """Return the problem of targets and weights that were checked by themselves."""
        norm = penalty.norm.on(design.shape[1], design.matrix_shape)
        check_loss(loss, y, s, intercept)
        return cls(loss, design, y, s, penalty.of(norm), fit_intercept=bool(intercept))

    def changed(self, **parts: Any) -> Self:
        """Return the same with other parts; ``replace`` takes as long as a small product."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), **parts)
        return made

    def with_offset(self, offset: object) -> Problem:
        """Return the problem with numbers added to all predictions; itself where None."""
        if offset is None:
            return self
        numbers = check_offset(offset, self.y.size)
        free = self.loss.free
        if self.plain_loss.translates:
            check_loss(self.plain_loss, self.y - numbers, self.weight, self.fit_intercept)
        loss = Offset(self.plain_loss, numbers)
        return self.changed(loss=loss if free is None else free.around(loss), offset=numbers)

    def freed(self, unpenalized: object) -> Problem:
        """Return the problem with these columns free of any penalty, gathered once.

        Those that it has free already stay so, and those join them that the norm leaves free. As
        columns of X they stay where they are: what they explain has no scores left, so that a norm
        that does not grow where an entry is set to 0 leaves them at 0.
        """
        n_features = self.design.shape[1]
        norm = self.regularizer.norm
        free = np.zeros(0, dtype=np.int64) if self.free is None else self.free
        if unpenalized is not None:
            free = np.union1d(free, check_free(unpenalized, n_features))
        free, norm = norm.without(free, n_features)
        if not free.size:
            return self
        regularizer = replace(self.regularizer, norm=norm)
        if self.free is not None and np.array_equal(free, self.free):
            return self.changed(regularizer=regularizer)
        Z = np.asarray(self.design.gather(free).dense(), dtype=np.float64)
        # Samples without weight have no say, and would have one in the scale of the basis.
        Z = np.where((self.weight > 0.0)[:, None], Z, 0.0)
        intercept = self.fit_intercept
        before = self.loss.free
        if before is not None:
            # Intercepts of tasks are free columns among others: steps are of all together.
            intercept = before.intercept
            own = before.columns
            own = own.toarray() if before.is_sparse else own[:, self.n_free :]
            Z = np.hstack([Z, own])
        loss = FreeColumns(self.plain_loss, Z, intercept)
        return self.changed(loss=loss, fit_intercept=False, free=free, regularizer=regularizer)

    def with_norm(self, norm: Norm) -> Problem:
        """Return the problem with another norm, and the columns free that it leaves free."""
        norm = norm.on(self.design.shape[1], self.design.matrix_shape)
        return self.changed(regularizer=replace(self.regularizer, norm=norm)).freed(None)

    def at(self, amount: float) -> Problem:
        """Return the problem at a level, or of a radius; itself if that is its own.

        The ridge term keeps its share of the penalty: ``tau`` scales with the level. A radius
        leaves it as it is.
        """
        penalty = self.regularizer
        if amount == penalty.amount:
            return self
        tau = self.tau
        if penalty.form != "constrained":
            tau *= amount / penalty.amount
        regularizer = Regularizer(penalty.norm, penalty.form, amount)
        return self.changed(regularizer=regularizer, tau=tau)

    def until(self, deadline: Deadline) -> Problem:
        """Return the problem with this deadline, unless its own is sooner."""
        sooner = self.deadline.sooner(deadline)
        return self if sooner is self.deadline else self.changed(deadline=sooner)

    def restricted_to(self, block: Design, columns: Columns) -> Problem:
        """Return the same problem over the given columns, whose data is ``block``."""
        norm = self.regularizer.norm
        restricted = norm.restrict(columns, self.design.shape[1])
        if restricted is None:
            raise TypeError(
                f"{type(norm).__name__} cannot be restricted to a few columns; "
                "use a solver over its atoms, or FISTA over all columns"
            )
        return self.changed(design=block, regularizer=self.regularizer.of(restricted))

    def entered(self, lifts: bool) -> tuple[Problem, Lift | None]:
        """Return the problem that a solver is given: over lifted coordinates, where there are any.

        min over w of f(X w) + R(inf { inner(u) : L u = w }) is min over u of f(X L u) +
        R(inner(u)): a point and a certificate of the second are a point, a bound on its objective
        and the same certificate of the first. ``lifts`` : whether the solver works there.
        """
        norm = self.regularizer.norm
        lift = norm.lift(self.design.shape[1]) if lifts else None
        if lift is None:
            return self, None
        if self.tau:
            raise ValueError(
                f"a ridge term mixes the overlapping parts of {type(norm).__name__}, which are "
                "solved for apart; use l1_ratio=1, or a solver over atoms such as "
                "solvers.AtomGeneration()"
            )
        design = Lifted(self.design, lift.expansion)
        return self.changed(design=design, regularizer=self.regularizer.of(lift.norm)), lift

    def centered(self) -> Problem:
        """Return the problem over y - c, c in the middle of y, where the intercept takes c up.

        The same problem, as long as ``origin`` is added to the intercept; but residuals of targets
        such as 1e6 + noise lose no digits.
        """
        if not self.loss.translates:
            return self
        loss = self.loss
        free = self.loss.free
        s = self.weight
        c = 0.0
        offset: Array | float = 0.0 if self.offset is None else self.offset
        if self.offset is not None:
            loss = loss.bare if free is None else free.around(loss.bare)
        if self.fit_intercept or (free is not None and free.intercept):
            y = self.y - offset
            c = optimal_shift(loss.bare, y, s, np.zeros(y.size))
        y = less(self.y, offset, c)
        return self.changed(loss=loss, y=y, origin=self.origin + c, offset=None)

    def given_back(
        self, certificate: Certificate, intercept: float, prediction: Array
    ) -> Certificate:
        """Return the certificate of the point as it is given back, all of it as floats."""
        if self.loss.free is not None:
            return certificate.widened(0.0, self._raised_by_floats(prediction))
        if not self.origin:
            return certificate
        # The slope of f is zero at the optimal intercept, so only the curvature counts.
        shift = ((intercept + self.origin) - self.origin) - intercept
        if self.loss.smoothed(1.0) is not None:
            return certificate.widened(0.0, abs(shift) * float(self.weight.sum()))
        return certificate.widened(0.0, self.curved(shift * shift * self.y.size))

    def _raised_by_floats(self, prediction: Array) -> float:
        """Return by how much f can be larger at the free coefficients as they are given back.

        What the sum Z g + b of floats is off by counts as well, or a fit that is perfect in floats
        would be said to be one.
        """
        free = self.loss.free
        y = self.y
        s = self.weight
        g, b = free.free_part(y, prediction, s)
        b = (b + self.origin) - self.origin
        value = free.inner.value(y, prediction + (free.columns @ g + b), s)
        off = growth(g.size + 1) * (abs(free.columns) @ np.abs(g) + abs(b))
        # Errors of independent roundings: with its slopes, they add up as their squares do.
        lost = float(np.linalg.norm(self.loss_gradient(prediction) * off))
        lost += self.curved(float(off @ off), prediction)
        return float(max(value - self.loss_value(prediction), 0.0)) + lost

    def free_part(self, prediction: Array) -> tuple[Array, float] | None:
        """Return coefficients and intercept that the loss itself has; None where it has none."""
        free = self.loss.free
        return None if free is None else free.free_part(self.y, prediction, self.weight)

    def foresee(self, predictions: Sequence[Array]) -> None:
        """Take note of the points that come next, so that rows elsewhere are asked only once."""

    @property
    def sent(self) -> tuple[int, int]:
        """Questions to rows that are elsewhere so far, and the bytes of them and of answers."""
        return sent_by(unwrapped(self.design))

    @property
    def plain_loss(self) -> Loss:
        """The loss without free columns: that at given coefficients of them."""
        return self.loss if self.loss.free is None else self.loss.free.inner

    @property
    def n_free(self) -> int:
        """How many of the free columns are columns of X; others are intercepts of tasks."""
        return 0 if self.free is None else self.free.size

    def task_intercepts(self, prediction: Array) -> Array:
        """Return the intercepts of tasks that have one each, (n_tasks,); of other problems none."""
        g, _ = self.free_part(prediction) or (np.zeros(0), 0.0)
        return np.asarray(g[self.n_free :])


@singledispatch
def sent_by(design: Design) -> tuple[int, int]:
    """Return how often data that is elsewhere was asked so far, and the bytes that travelled."""
    return 0, 0


@sent_by.register
def _by_derived(design: Derived) -> tuple[int, int]:
    return sent_by(unwrapped(design.design))


@singledispatch
def over_sums(design: Design, problem: Problem) -> Problem:
    """Return the same problem over sums that are formed where the rows are.

    Itself where X has no rows elsewhere, or the problem needs more of them than sums. Designs whose
    rows are elsewhere register what they do.
    """
    return problem


@over_sums.register
def _of_wrapped(design: Forwarding, problem: Problem) -> Problem:
    """Return the problem over sums of what is wrapped."""
    return over_sums(design.inner, problem)


@over_sums.register
def _of_counted(design: Counted, problem: Problem) -> Problem:
    """Return the problem over sums, whose passes count as those over the data."""
    summed = over_sums(design.inner, problem)
    return problem if summed is problem else summed.changed(design=design.around(summed.design))
