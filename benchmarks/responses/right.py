"""Are the answers right? Every response against the programs that people trust, in one run.

Each row is of many problems, drawn from seeds: what was compared, with whom, and the largest
difference: of coefficients, where both solve to rounding, or relative, of objectives, where the
other is a solver of programs, whose own accuracy it then shows. Problems of loss_oracles.py, the
longest part, are kept and gone on with in its own file.

    python -m benchmarks.responses.right [--only cox] [--seeds 10] [--problems 1000] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog, minimize

from atomlearn import AtomicRegressor, AtomicSurvival, designs, losses, norms
from atomlearn.losses import as_loss, survival_target
from atomlearn.testing.loss_oracles import oracle_of, targets_of
from benchmarks import loss_oracles
from benchmarks.harness import Options, Table
from benchmarks.harness.options import add_options
from tests.oracles.sums import solve_sum

#: What was compared, with whom, and how far it was off.
Difference = tuple[str, str, float]

POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
SMOOTH = (
    *("squared", "logistic", "squared_hinge", "huber"),
    *("poisson", "gamma", "tweedie", "negative_binomial"),
)


def largest(a: Any, b: Any) -> float:
    """Return the largest difference of two lists of coefficients."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


def relative(a: float, b: float) -> float:
    """Return the relative difference of two objectives."""
    return abs(a - b) / max(abs(b), 1e-12)


def table(rng: np.random.Generator, n: int = 120, p: int = 5) -> tuple[Any, Any]:
    """Return X with correlated columns, and a signal of three of them."""
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, 0.5 * X[:, 0] - 0.4 * X[:, 1] + 0.3 * X[:, -1]


def answers(name: str, z: Any, rng: np.random.Generator) -> Any:
    """Return targets of a loss with a log link, whose means are exp(z)."""
    mean = np.exp(z)
    if name == "poisson":
        return rng.poisson(mean).astype(float)
    if name == "negative_binomial":
        return rng.negative_binomial(2, 2 / (2 + mean)).astype(float)
    amounts = rng.gamma(2.0, mean / 2.0)
    return amounts if name == "gamma" else np.where(rng.random(z.size) < 0.3, 0.0, amounts)


def glms(rng: np.random.Generator) -> Iterator[Difference]:
    """All columns free, weights and an exposure: the models of scikit-learn and statsmodels."""
    import statsmodels.api as sm
    from sklearn.linear_model import TweedieRegressor

    X, z = table(rng)
    s, exposure = rng.integers(1, 4, 120).astype(float), rng.uniform(0.5, 5.0, 120)
    log, families = sm.families.links.Log(), sm.families
    known = {
        "poisson": families.Poisson(),
        "gamma": families.Gamma(log),
        "tweedie": families.Tweedie(log, var_power=1.5),
        "negative_binomial": families.NegativeBinomial(alpha=0.5),
    }
    for name, family in known.items():
        kinds: dict[str, Any] = {
            "tweedie": losses.Tweedie(1.5),
            "negative_binomial": losses.NegativeBinomial(2.0),
        }
        model = AtomicRegressor(loss=kinds.get(name, name), unpenalized=[*range(5)], tol=1e-13)
        for offset in (None, np.log(exposure)):
            y = answers(name, z if offset is None else z + offset, rng)
            model.fit(X, y, s, offset)
            mine = np.concatenate([[model.intercept_], model.coef_])
            theirs = sm.GLM(y, sm.add_constant(X), family, freq_weights=s, offset=offset)
            other = theirs.fit(tol=1e-15, maxiter=300).params
            what = "glm " + name + ("" if offset is None else ", exposure")
            yield what, "statsmodels", largest(mine, other)
            if offset is None and name in POWERS:
                settings: dict[str, Any] = {"tol": 1e-13, "solver": "newton-cholesky"}
                sk = TweedieRegressor(power=POWERS[name], link="log", alpha=0.0, **settings)
                sk.fit(X, y, s)
                yield what, "scikit-learn", largest(mine, [sk.intercept_, *sk.coef_])


def cox(rng: np.random.Generator) -> Iterator[Difference]:
    """Times with ties, strata and late entries: coefficients of two packages, all free; l1."""
    import pandas as pd
    from lifelines import CoxPHFitter
    from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis

    X, z = table(rng)
    time, event = np.ceil(rng.exponential(np.exp(-z)) * 6) / 2, rng.random(120) < 0.7
    entry, stratum = np.maximum(0, time - rng.integers(1, 6, 120)), rng.integers(0, 2, 120)
    columns = list("abcde")
    frame = pd.DataFrame(X, columns=columns).assign(time=time, event=event)
    for late, apart in ((False, False), (True, False), (False, True), (True, True)):
        y = survival_target(event, time, entry if late else None, stratum if apart else None)
        model = AtomicSurvival(unpenalized=[*range(5)], tol=1e-13).fit(X, y)
        asked: dict[str, Any] = {"fit_options": {"precision": 1e-14}}
        whole = frame.assign(entry=entry) if late else frame
        whole = whole.assign(stratum=stratum) if apart else whole
        asked |= {"entry_col": "entry"} if late else {}
        asked |= {"strata": ["stratum"]} if apart else {}
        other = CoxPHFitter().fit(whole, "time", "event", **asked).params_[columns]
        what = "cox ties" + ", late entries" * late + ", strata" * apart
        yield what, "lifelines", largest(model.coef_, other)
    y = np.array([*zip(event, time, strict=True)], dtype="?,f8")
    for ties in ("efron", "breslow"):
        model = AtomicSurvival(ties=ties, unpenalized=[*range(5)], tol=1e-13).fit(X, y)
        others = CoxPHSurvivalAnalysis(ties=ties, n_iter=200, tol=1e-14).fit(X, y)
        yield f"cox {ties}", "scikit-survival", largest(model.coef_, others.coef_)
    lasso = AtomicSurvival(alpha=0.05, ties="breslow", tol=1e-13).fit(X, y)
    coxnet = CoxnetSurvivalAnalysis(alphas=[0.05], l1_ratio=1.0, tol=1e-15, max_iter=10**6)
    yield "cox l1", "scikit-survival Coxnet", largest(lasso.coef_, coxnet.fit(X, y).coef_[:, 0])


def partialled(rng: np.random.Generator) -> Iterator[Difference]:
    """Free columns: the same fit after they, and the intercept, are projected out of X and y."""
    X, z = table(rng, 60, 90)
    free = np.column_stack([rng.standard_normal((60, 3)), X[:, 5] + rng.standard_normal(60)])
    y = z + free @ [3.0, -2.0, 1.0, 4.0] + rng.standard_normal(60)
    Q = np.linalg.qr(np.column_stack([np.ones(60), free]))[0]
    settings = (
        (norms.L1(), "penalized"),
        (norms.Groups([range(i, i + 3) for i in range(0, 90, 3)]), "penalized"),
        (norms.KSupport(5), "squared"),
        (norms.L2(), "constrained"),
    )
    for norm, form in settings:
        amount: Any = {"radius": 0.5} if form == "constrained" else {"level": 5.0}
        asked: Any = {"norm": norm, "form": form, "tol": 1e-10, **amount}
        whole = solve_sum(
            np.hstack([X, free]), y, unpenalized=range(90, 94), fit_intercept=True, **asked
        )
        rest = solve_sum(X - Q @ (Q.T @ X), y - Q @ (Q.T @ y), **asked)
        what = f"unpenalized {type(norm).__name__}"
        yield what, "partialling out", largest(whole.coef[:90], rest.coef)


def offsets(rng: np.random.Generator) -> Iterator[Difference]:
    """An offset: CVXPY's optimum with it as one column more, whose coefficient is held at 1."""
    X, z = table(rng, 50, 8)
    given, s = rng.standard_normal(50), rng.integers(1, 3, 50).astype(float)
    whole = np.column_stack([X, given])
    for name in (*SMOOTH, "quantile"):
        loss = as_loss(name)
        y = loss.check_target(targets_of(loss, z + given + 0.5 * rng.standard_normal(50)))
        fit = solve_sum(X, y, loss=loss, level=1.0, sample_weight=s, offset=given, tol=1e-10)
        w = cp.Variable(9)
        value = oracle_of(loss).expression(cp, y, whole @ w, s) + cp.norm1(w[:8])
        best = cp.Problem(cp.Minimize(value), [w[8] == 1.0]).solve(solver="CLARABEL")
        yield f"offset {name}", "CVXPY, a fixed column", relative(fit.objective, float(best))


def programs(rng: np.random.Generator) -> Iterator[Difference]:
    """Huber's loss, classes and quantiles against quadratic, conic and linear programs."""
    X, z = table(rng, 50, 8)
    y = z + rng.standard_t(2, 50)
    fit = solve_sum(X, y, loss=losses.Huber(0.5), level=2.0, tol=1e-10)
    u, a, w = cp.Variable(50), cp.Variable(50), cp.Variable(8)
    cost = 0.5 * cp.sum_squares(u) + 0.5 * cp.norm1(a) + 2.0 * cp.norm1(w)
    best = cp.Problem(cp.Minimize(cost), [X @ w + u + a == y]).solve(solver="CLARABEL")
    yield "huber", "its quadratic program, Clarabel", relative(fit.objective, float(best))
    codes = rng.integers(0, 3, 50)
    for norm in (norms.L1(), norms.RowGroups()):
        W, several = cp.Variable((8, 3)), losses.Multinomial(3)
        rows = cp.norm1(W) if isinstance(norm, norms.L1) else cp.sum(cp.norm(W, axis=1))
        value = cp.sum(cp.log_sum_exp(X @ W, axis=1)) - cp.sum(cp.multiply(np.eye(3)[codes], X @ W))
        best = cp.Problem(cp.Minimize(value + rows)).solve(solver="CLARABEL")
        flat = np.eye(3)[codes].ravel()
        fit = solve_sum(designs.Tasks(X, 3), flat, loss=several, norm=norm, level=1.0, tol=1e-10)
        yield f"multinomial {type(norm).__name__}", "CVXPY", relative(fit.objective, float(best))
    for q in (0.1, 0.5, 0.8):
        fit = solve_sum(X, y, loss=losses.Quantile(q), level=1.0, fit_intercept=True, tol=1e-10)
        one, eye = np.ones((50, 1)), np.eye(50)
        # Twins of everything: w, the intercept, and what is above and below.
        costs = np.concatenate([np.ones(16), [0, 0], np.full(50, q), np.full(50, 1 - q)])
        equal = np.hstack([X, -X, one, -one, eye, -eye])
        other = linprog(costs, A_eq=equal, b_eq=y, method="highs")
        yield f"quantile {q:g}", "its linear program, HiGHS", relative(fit.objective, other.fun)


def bounds(rng: np.random.Generator) -> Iterator[Difference]:
    """Bounds and factors of coefficients: L-BFGS-B over the two sides of each."""
    X, z = table(rng, 50, 8)
    lower, upper = -rng.choice([0.0, 0.1, 1.0], 8), rng.choice([0.0, 0.1, 1.0], 8)
    factors, s = rng.choice([0.5, 1.0, 3.0], 8), np.ones(50)
    for name in (*SMOOTH, "cox"):
        loss: Any = losses.Cox() if name == "cox" else as_loss(name)
        if name == "cox":
            y: Any = survival_target(rng.random(50) < 0.7, rng.exponential(np.exp(-z)))
        else:
            y = loss.check_target(targets_of(loss, z + 0.5 * rng.standard_normal(50)))

        def objective(both: Any, loss: Any = loss, y: Any = y) -> Any:
            prediction = X @ (both[:8] - both[8:])
            slope = X.T @ loss.gradient(y, prediction, s)
            value = loss.value(y, prediction, s) + factors @ (both[:8] + both[8:])
            return value, np.concatenate([slope + factors, factors - slope])

        fit = solve_sum(X, y, loss=loss, norm=norms.L1(factors, lower, upper), level=1.0, tol=1e-10)
        sides = [(0.0, side) for side in [*upper, *-lower]]
        options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 20_000, "maxfun": 200_000}
        other = minimize(objective, np.zeros(16), jac=True, bounds=sides, options=options)
        yield f"bounds {name}", "SciPy, L-BFGS-B", relative(fit.objective, other.fun)


#: Each part, and the difference that is asked for.
PARTS: dict[str, tuple[Callable[[np.random.Generator], Iterator[Difference]], float]] = {
    "glm": (glms, 1e-8),
    "cox": (cox, 1e-6),
    "unpenalized": (partialled, 1e-8),
    "offset": (offsets, 2e-6),
    "programs": (programs, 2e-6),
    "bounds": (bounds, 1e-6),
}


def main() -> None:
    """All parts, then the thousand convex programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--only", default="", help="parts whose name begins so")
    parser.add_argument("--seeds", type=int, default=10, help="problems of each kind")
    parser.add_argument("--problems", type=int, default=1000, help="convex programs; 0 for none")
    given = parser.parse_args()
    seeds = 1 if given.smoke else given.seeds
    warnings.simplefilter("ignore")
    with Table("responses_right", Options(given.smoke, given.repeats, given.out)) as rows:
        for part, (compare, asked) in PARTS.items():
            if not part.startswith(given.only):
                continue
            found: dict[tuple[str, str], list[float]] = {}
            for seed in range(seeds):
                for what, other, off in compare(np.random.default_rng(seed)):
                    found.setdefault((what, other), []).append(off)
            for (what, other), offs in found.items():
                most = float(np.max(offs))
                met = "yes" if most <= asked else "no"
                rows.add(
                    what=what, against=other, problems=len(offs), largest=most, asked=asked, met=met
                )
        if given.problems and not given.only and not given.smoke:
            out = given.out or Path("benchmarks/results")
            summary = loss_oracles.run(given.problems, out)
            wrong = len(summary["wrong"])
            without = sum(summary[loss]["no oracle"] for loss in loss_oracles.LOSSES)
            rows.add(
                what=f"every loss: {wrong} wrong, {without} without an oracle", against="CVXPY",
                problems=summary["problems"], asked=0, met="no" if wrong else "yes",
            )  # fmt: skip


if __name__ == "__main__":
    main()
