"""p-values of features given all others: by the part of a column that others do not share.

The law of x_j given the other columns comes from only X, as for knockoffs. If y does not depend
on x_j given the others, x_j is as good as drawn anew from that law, and whatever is computed from y
and the *other* columns stays as it is. Both tests here are of that kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, false_discovery_control
from sklearn.base import clone, is_classifier

from atomlearn.core import (
    L1,
    TINY,
    Array,
    Columns,
    Loss,
    Problem,
    Regularizer,
    Settings,
    WarmStart,
    as_design,
    dense_part,
    feature_names,
    loss_gradient,
    whole_number,
    with_norm,
)
from atomlearn.estimators.dependent_rows import held_out
from atomlearn.estimators.targets import class_codes, targets_of_rows
from atomlearn.findings.gaussian import generator, knockoffs_of, rescaled
from atomlearn.findings.importance import coefficients, loss_for
from atomlearn.findings.nodewise import BARRED, GAP
from atomlearn.findings.precision import columns_named, grouped, members_of
from atomlearn.findings.sums import SumOfProducts
from atomlearn.findings.verdict import numbers_of

#: Draws that do as well as the data, after which more of them would tell nothing new.
ENOUGH = 10
#: Variance of a direction, as a share of the largest one, below which it is none.
RANK = 1e-10
#: Relative error of the robust variance from which on it says nothing.
MOST_NOISE = 0.5
CONDITION = (
    "of no effect given all other columns, where rows are independent and each column, given the "
    "others, is linear in them with noise that does not depend on them ({}), whatever the spread "
    "of the target; {}"
)


@dataclass(frozen=True, slots=True)
class FeatureTests:
    """A p-value of each feature, or group of features, given all others.

    units : the columns of each test; p_values : (m,); adjusted : (m,) the smallest false discovery
    rate at which each is selected, by the rule of Benjamini and Hochberg; sizes : (m,) how far from
    nothing, in errors of the statistic (``p_values``), or by how much the loss of a row left out
    rises without it
    (``conditional_importance``); law : how the columns given the others were estimated; fitted : to
    which rows the model of the target was.
    """

    units: tuple[Columns, ...]
    p_values: Array
    sizes: Array
    law: str
    fitted: str

    @property
    def adjusted(self) -> Array:
        return np.asarray(false_discovery_control(self.p_values))

    @property
    def condition(self) -> str:
        """What must hold for a feature without an effect to have p <= 0.05 in one of 20 tables."""
        return CONDITION.format(self.law, self.fitted)

    def selected(self, fdr: float = 0.1) -> list[int]:
        """Return the numbers of the columns in units that are selected at this rate."""
        return sorted(
            j
            for unit, rate in zip(self.units, self.adjusted, strict=True)
            if rate <= fdr
            for j in unit.tolist()
        )

    def of_columns(self) -> dict[int, tuple[float, float]]:
        """Return of each column that was tested the p-value of its unit, and the adjusted one."""
        values = zip(self.units, self.p_values.tolist(), self.adjusted.tolist(), strict=True)
        return {j: (p, rate) for unit, p, rate in values for j in unit.tolist()}

    def sentences(self, names: Any = None, most: int = 20) -> tuple[str, ...]:
        """Return the condition, and a line for each of the units with the smallest p-values."""
        told = [f"p-values {self.condition}"]
        for at in np.argsort(self.p_values, kind="stable")[:most]:
            unit = self.units[at].tolist()
            called = ", ".join(f"column {j}" if names is None else str(names[j]) for j in unit)
            told.append(
                f"effect of {called}: p = {self.p_values[at]:.2g}, adjusted for the number "
                f"of columns {self.adjusted[at]:.2g}"
            )
        return tuple(told)

    def __str__(self) -> str:
        return "\n".join(self.sentences())


@dataclass(frozen=True, slots=True)
class TestedUnits:
    """The units of a test: columns tested together, and the parts that others do not explain.

    X : (n, p) standardized, the means of clusters where ``groups`` is "auto"; own : (n, p) what
    each column of it does not share with the others; places : columns of it, a unit; members :
    columns of the data, a unit; law : in words.
    """

    X: Array
    own: Array
    places: tuple[Columns, ...]
    members: tuple[Columns, ...]
    law: str

    @classmethod
    def of(cls, X: Any, columns: Any, groups: Any, covariance: Any) -> TestedUnits:
        design = as_design(X)
        names = feature_names(X)
        n_columns = design.shape[1]
        every = np.arange(n_columns)
        standard, _, scales, found = grouped(dense_part(design, every), groups, names)
        labels = every if found is None else found
        members = members_of(labels)
        joint = standard.shape[1] == n_columns
        places = members if joint else list(np.arange(len(members))[:, None])
        asked = every if columns is None else columns_named(columns, names, n_columns)
        chosen = np.unique(labels[asked])
        made = knockoffs_of(standard, rescaled(covariance, scales))
        pick = [tuple(part[at] for at in chosen.tolist()) for part in (places, members)]
        return cls(standard, made.own, pick[0], pick[1], made.words)


def p_values(
    X: Any,
    y: ArrayLike,
    columns: Any = None,
    *,
    groups: Any = None,
    covariance: Any = "factors",
    loss: str | Loss = "auto",
    n_alphas: int = 20,
    cv: int | Literal["auto"] = "auto",
    rng: int = 0,
) -> FeatureTests:
    r"""Return p-values of features given all others: distilled conditional randomization.

    With r_j the residuals of a lasso of y on all columns but x_j, and e_j = x_j - E(x_j | others),
    the sum e_j'r_j has mean 0 if y does not depend on x_j given the others, whatever it depends
    on otherwise. Its variance is the larger one of sum_i e_ij^2 r_ij^2 and that of e_j in another
    order. Where few rows matter (rare columns, rare classes, heavy tails) p is that of a
    saddlepoint approximation to the law of such sums. The lasso is fitted again without each column
    that it uses; of the others it is the same fit, to the gap that is proved.

    Parameters
    ----------
    X : (n_samples, n_features)
        Held in memory as a dense array.
    y : (n_samples,)
        Numbers, labels (one test a feature, for all classes together) or survival times.
    columns : numbers or names of columns, optional
        Those to test, all by default. Fewer need fewer fits.
    groups : lists of columns, labels (n_features,) or "auto", optional
        One test a group: of "no column of it has an effect". "auto": clusters of columns that are
        all correlated by more than 0.95 are tested by their mean, given the means of others.
        Alone they have hardly any power.
    covariance : {"auto", "factors", "sparse_precision", "ledoit_wolf"} or (p, p) array
        Of the columns, see ``KnockoffSelector``. "factors" is "auto" without Ledoit-Wolf, which
        takes columns for less dependent than they are: too many p-values would be small.
    loss, n_alphas, cv
        Of the lasso, see ``KnockoffSelector``.
    rng : int
        Seed of the folds, if there are any.

    References
    ----------
    M. Liu, E. Katsevich, L. Janson, A. Ramdas. Fast and powerful conditional randomization testing
    via distillation. Biometrika 109 (2022) 277-293. E. Candes, Y. Fan, L. Janson, J. Lv. Panning
    for gold. JRSS B 80 (2018) 551-577.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.findings import p_values
    >>> X = np.random.default_rng(0).standard_normal((200, 40))
    >>> y = X[:, 3] - X[:, 8] + np.random.default_rng(1).standard_normal(200)
    >>> tests = p_values(X, y)
    >>> tests.selected(fdr=0.1)
    [3, 8]
    """
    target = targets_of_rows(X, y)
    units = TestedUnits.of(X, columns, groups, covariance)
    found = loss_for(target, loss)
    # By columns: what fits read of X is in one piece.
    table = np.asfortranarray(units.X)
    level = coefficients(table, target, L1(), found, n_alphas, cv, rng)[1] * len(target)
    targets = [target]
    if found.task == "classification":
        codes = class_codes(target)[1]
        targets = list(2.0 * numbers_of(found.task, codes).T - 1.0)
    squares, rank = np.zeros((2, len(units.places)))
    residuals = [_residuals(table, one, found, level) for one in targets]
    for at, unit in enumerate(units.places):
        left = np.column_stack([without(unit) for without in residuals])
        squares[at], rank[at] = _length(units.own[:, unit], left)
    tested = rank > 0
    values = np.ones(rank.size)
    values[tested] = chi2.sf(squares[tested], rank[tested])
    told = "the lasso of the target was chosen on the same rows"
    return FeatureTests(units.members, values, np.sqrt(squares), units.law, told)


def _length(own: Array, left: Array) -> tuple[float, int]:
    """Return the squared length of own'left in errors, and how many numbers it is made of.

    Along each direction that with the larger one of two variances: that of rows drawn anew, and the
    robust one. Where few rows matter the robust one says nothing (if no case is a carrier, it is
    far too small), and the law is not normal: the length is then that with the same p.
    """
    left = left - left.mean(axis=0)
    sums = (own[:, :, None] * left[:, None, :]).reshape(len(left), -1)
    drawn = np.kron(own.T @ own, left.T @ left) / len(left)
    values, vectors = la.eigh(drawn)
    kept = values > RANK * max(values[-1], TINY)
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    robust, turned = la.eigh(whiten.T @ (sums.T @ sums) @ whiten)
    pairs = [SumOfProducts(e, r) for e in own.T for r in left.T if e.any() and r.any()]
    tells = all(pair.noise <= MOST_NOISE for pair in pairs)
    total = turned.T @ whiten.T @ sums.sum(axis=0)
    square = float(np.sum(total**2 / np.maximum(robust if tells else 1.0, 1.0)))
    shares = [pair.shortened(tells) for pair in pairs]
    return square * min(shares, default=1.0), total.size


def _residuals(X: Array, y: Any, loss: Loss, level: float) -> Callable[[Columns], Array]:
    """Return what gives the residuals of a lasso of y without some columns."""
    penalty = Regularizer(L1(), "penalized", level)
    free = loss.task != "survival"  # a hazard has no intercept
    problem = Problem.build(as_design(X), y, loss, penalty, fit_intercept=free)

    def left(problem: Problem, start: WarmStart | None = None) -> tuple[Array, WarmStart]:
        result = Settings(tol=GAP).run(problem, start)
        return -loss_gradient(problem, result.predict(problem.design)), result.warm_start()

    whole, start = left(problem)

    def without(unit: Columns) -> Array:
        kept = ~np.isin(start.columns, unit)
        if kept.all():
            return whole
        prices = np.ones(X.shape[1])
        prices[unit] = BARRED
        near = replace(start, columns=start.columns[kept], weights=start.weights[kept])
        return left(with_norm(problem, L1(weights=prices)), near)[0]

    return without


def conditional_importance(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    columns: Any = None,
    *,
    groups: Any = None,
    covariance: Any = "factors",
    test_fraction: float = 0.3,
    n_draws: int | None = None,
    rng: int = 0,
) -> FeatureTests:
    """Return by how much any model predicts worse if a feature has no information of its own.

    A clone is fitted to a part of the rows. On the others, x_j keeps the part that the other
    columns explain, and the rest is permuted between rows. Its size is the mean rise of the loss of
    a row; p is the share of draws in which the loss is no larger than at the data.

    Parameters
    ----------
    estimator : any regressor or classifier of scikit-learn's kind
        Squared errors count; for classifiers minus the log probability of the label, if there are
        probabilities, else errors.
    X, y : (n_samples, n_features), (n_samples,)
    columns, groups, covariance : see ``p_values``
    test_fraction : float
        Share of the rows that are left out of the fit.
    n_draws : int, optional
        Permutations at most: p is never below 1 / (n_draws + 1). They end early where ten of them
        did as well as the data. By default ten times the number of tests, so that a single one
        can be detected at a false discovery rate of 0.1; at least 199 and at most 4,999.
    rng : int
        Seed of the split and the permutations.

    References
    ----------
    A. Chamma, D. Engemann, B. Thirion. Statistically valid variable importance assessment through
    conditional permutations. NeurIPS 36 (2023). W. Tansey, V. Veitch, H. Zhang, R. Rabadan, D.
    Blei. The holdout randomization test for feature selection in black box models. JCGS 31 (2022)
    151-162. J. Besag, P. Clifford. Sequential Monte Carlo p-values. Biometrika 78 (1991) 301-304.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from atomlearn.findings import conditional_importance
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).standard_normal(200)
    >>> found = conditional_importance(LinearRegression(), X, y)
    >>> bool(found.p_values[0] < 0.01 < found.p_values[1:].min())
    True
    """
    target = targets_of_rows(X, y)
    random = generator(rng)
    units = TestedUnits.of(X, columns, groups, covariance)
    design = as_design(X)
    table = dense_part(design, np.arange(design.shape[1]))
    codes = class_codes(target)[1] if is_classifier(estimator) else None
    train, test = held_out(len(target), test_fraction, rng, codes)
    model = clone(estimator).fit(table[train], target[train])
    losses = _losses_of(model, target[test])
    if n_draws is None:
        n_draws = min(max(10 * len(units.places), 199), 4999)
    n_draws = whole_number("conditional_importance", "n_draws", n_draws)
    values, sizes = np.ones((2, len(units.places)))
    for at, (places, members) in enumerate(zip(units.places, units.members, strict=True)):
        own = units.own[:, places]
        mine = table[:, members]
        # The projection of the columns on it is the part that the others do not explain.
        part = own @ np.linalg.lstsq(own, mine - mine.mean(axis=0), rcond=None)[0]
        draws = _permuted(losses, table[test], members, part[test], n_draws, random)
        values[at], sizes[at] = draws
    told = "the model was fitted to other rows"
    return FeatureTests(units.members, values, sizes, units.law, told)


def _losses_of(model: Any, y: NDArray[Any]) -> Callable[[Array], float]:
    """Return what gives the mean loss of rows whose target is known."""
    if not is_classifier(model):
        return lambda X: float(np.mean((y - model.predict(X)) ** 2))
    if not hasattr(model, "predict_proba"):
        return lambda X: float(np.mean(y != model.predict(X)))
    place = np.searchsorted(model.classes_, y)
    rows = np.arange(y.size)
    return lambda X: -float(np.mean(np.log(np.maximum(model.predict_proba(X)[rows, place], TINY))))


def _permuted(
    loss: Callable[[Array], float],
    X: Array,
    columns: Columns,
    part: Array,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the share of permutations of a part that do as well as none, and the mean rise."""
    before = loss(X)
    drawn = list[float]()
    changed = X.copy()
    as_well = 0
    while len(drawn) < n_draws and as_well < ENOUGH:
        changed[:, columns] = X[:, columns] - part + rng.permutation(part)
        drawn.append(loss(changed))
        as_well += drawn[-1] <= before
    # Ended by the draws that did as well, the share of them is exact; else the data are one more.
    share = as_well / len(drawn) if as_well == ENOUGH else (1 + as_well) / (1 + len(drawn))
    return share, float(np.mean(drawn)) - before
