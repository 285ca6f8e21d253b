"""Problems with lifted norms: certificates over the features, warm starts, paths, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from atomlearn import norms
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.norms import (
    L1,
    OWL,
    Blocks,
    Chains,
    Groups,
    KSupport,
    LatentGroups,
    LInf,
    Nonnegative,
    Operators,
    Scaled,
    Trees,
    Union,
)
from atomlearn.paths import path
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, ColumnGeneration, run, stopping
from tests.core.data.test_moments import assert_moments_have_the_solution_of_the_rows
from tests.core.problem.test_offset_and_free import assert_leaves_free_columns_alone
from tests.core.problem.test_verification import X as VERIFIED
from tests.core.problem.test_verification import Y, assert_verified
from tests.core.solvers.test_checkpoint import assert_resumes, digest
from tests.core.solvers.test_contracts_of_run import assert_predicts_what_it_fitted
from tests.core.solvers.test_contracts_of_run import data as plain_data
from tests.core.solvers.test_interrupts import assert_interrupts_return_certified_points
from tests.core.solvers.test_small_levels import assert_ends_after_a_number_of_steps
from tests.core.solvers.test_units import assert_scales
from tests.oracles.sums import solve_sum

P = 12
NORMS = {
    "latent": LatentGroups([[0, 1, 2, 3], [3, 4, 5], [5, 6, 0], [7, 8, 9, 10]], "sqrt_size"),
    "chains": Chains(4),
    "trees": Trees([list(range(8)), [0, 1], [2, 3, 4]], weights=[2.0, 1.0, 1.2]),
    "operators": Operators([np.eye(P)[:5], np.eye(P)[4:], np.tri(P)[[3, 7, 11]] / 3.0]),
    "union": Union([Scaled(L1(), 1.2), Groups(np.arange(P) // 3), Chains(5)]),
    "union of others": Union([KSupport(3), Scaled(LInf(), 5.0)]),
    "nonnegative": Nonnegative(Chains(3)),
    "scaled": Scaled(Chains(3), 2.0),
    "owl": OWL(np.linspace(2.0, 0.2, P)),
    "linf": LInf(),
    "blocks": Blocks([L1(), KSupport(2)], [np.arange(0, P, 2), np.arange(1, P, 2)]),
}
FORMS = ("penalized", "squared", "constrained")


def data(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, P))
    y = X[:, :4] @ np.ones(4) + 0.5 * rng.normal(size=40) + 0.3
    return X, (y if loss == "squared" else np.sign(y)), rng.uniform(0.5, 2.0, size=40)


#: Each norm meets each form, and each form each loss.
COVERED = [
    (name, form, ("squared", "logistic", "squared_hinge")[(i + j) % 3])
    for i, name in enumerate(NORMS)
    for j, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("name", "form", "loss"), COVERED)
def test_certificates_hold_over_the_features(name, form, loss):
    """The gap is confirmed from w alone: value of the norm, polar, conjugate, no lifts."""
    norm = NORMS[name]
    X, y, weight = data(0, loss)
    amount = {"penalized": 4.0, "squared": 2.0, "constrained": 0.7}[form]
    key = "radius" if form == "constrained" else "level"
    r = solve_sum(
        X,
        y,
        loss=loss,
        norm=norm,
        form=form,
        fit_intercept=True,
        sample_weight=weight,
        tol=1e-7,
        **{key: amount},
    )
    assert r.converged
    f, w = as_loss(loss), r.coef
    prediction = X @ w + r.intercept
    gauge = norm.value(w)
    regularizer = Regularizer(norm, form, amount)
    if form == "constrained":
        assert gauge <= amount * (1 + 1e-6)
        gauge = min(gauge, amount)
    objective = f.value(y, prediction, weight) + regularizer.value(gauge)
    assert objective <= r.objective * (1 + 1e-6)
    v = -f.gradient(y, prediction, weight)
    assert abs(v.sum()) <= 1e-6 * np.abs(v).sum()
    up, down = v[v > 0].sum(), -v[v < 0].sum()
    v *= np.where(v > 0, min(1.0, down / up), min(1.0, up / down))
    polar = norm.polar(as_design(X).scores(v))
    if form == "penalized":
        v *= min(1.0, amount / polar)
        dual = -f.conjugate(y, -v, weight)
    else:
        dual = -f.conjugate(y, -v, weight) - regularizer.conjugate(polar, np.inf)
    assert objective - dual <= 3e-6 * objective


@pytest.mark.parametrize("name", ["latent", "chains", "union", "nonnegative", "trees"])
def test_warm_starts_and_paths(name):
    X, y, _ = data(1, "squared")
    norm = NORMS[name]
    first = solve_sum(X, y, norm=norm, level=5.0, tol=1e-8)
    again = solve_sum(X, y, norm=norm, level=5.0, tol=1e-8, warm_start=first)
    assert again.iterations == 0
    assert_allclose(again.coef, first.coef)
    # Without its parts the warm start is decomposed anew: never wrong, at most slower.
    plain = solve_sum(X, y, norm=norm, level=5.0, tol=1e-8, warm_start=replace(first, lifted=None))
    assert_allclose(plain.objective, first.objective, rtol=1e-8)
    # Parts that do not add up to w are not believed.
    broken = replace(first, lifted=(first.lifted[0], 2.0 * first.lifted[1]))
    assert_allclose(
        solve_sum(X, y, norm=norm, level=5.0, tol=1e-8, warm_start=broken).coef,
        first.coef,
        atol=1e-3,
    )
    for form in FORMS:
        assert path(X, y, norm=norm, form=form, n_alphas=6, tol=1e-6, fit_intercept=False).converged


def test_parts_add_up_and_lie_on_their_sets():
    X, y, _ = data(2, "squared")
    norm = NORMS["latent"]
    r = solve_sum(X, y, norm=norm, level=3.0)
    total = np.zeros(P)
    sets = norm.membership(P)
    for part in r.parts:
        total[part.columns] += part.weights
        allowed = sets.members[sets.starts[part.group] : sets.starts[part.group + 1]]
        assert np.isin(part.columns, allowed).all()
    assert_allclose(total, r.coef, atol=1e-13)
    lengths = sum(
        np.sqrt(sets.sizes)[part.group] * np.linalg.norm(part.weights)
        if part.group < sets.n_listed
        else np.linalg.norm(part.weights)
        for part in r.parts
    )
    assert_allclose(lengths, norm.value(r.coef), rtol=1e-5)


@pytest.mark.parametrize("name", ["latent", "operators", "union"])
def test_sparse_and_single_precision_data(name):
    X, y, _ = data(3, "squared")
    X[np.abs(X) < 0.7] = 0.0
    norm = NORMS[name]
    dense = solve_sum(X, y, norm=norm, level=3.0, tol=1e-9)
    assert_allclose(
        solve_sum(sparse.csr_array(X), y, norm=norm, level=3.0, tol=1e-9).coef,
        dense.coef,
        atol=1e-6,
    )
    single = solve_sum(X.astype(np.float32), y, norm=norm, level=3.0, tol=1e-6)
    assert_allclose(single.coef, dense.coef, atol=1e-2)


def test_fista_works_on_the_lifted_problem():
    X, y, _ = data(4, "logistic")
    norm = NORMS["latent"]
    mine = solve_sum(X, y, loss="logistic", norm=norm, level=1.0, tol=1e-8)
    other = solve_sum(
        X, y, loss="logistic", norm=norm, level=1.0, tol=1e-6, solver=FISTA(), max_iter=5000
    )
    assert other.converged
    assert_allclose(other.objective, mine.objective, rtol=2e-6)


def test_column_generation_refuses_squares_next_to_latent_parts():
    X, y, _ = data(5, "squared")
    kind = {"norm": Chains(3), "level": 1.0, "tau": 0.1}
    with pytest.raises(ValueError, match=r"mixes the overlapping parts.*l1_ratio=1"):
        solve_sum(X, y, solver=ColumnGeneration(), **kind)
    assert solve_sum(X, y, **kind).converged


def test_limits_and_interrupts_return_features():
    X, y, _ = data(6, "squared")
    problem = Problem.build(
        as_design(X), y, as_loss("squared"), Regularizer(Chains(3), "penalized", 0.5)
    )

    def stop(progress):
        if progress.state.iteration == 1:
            raise KeyboardInterrupt

    r = run(
        problem,
        ColumnGeneration(batch=1),
        stopping.RelativeGap(1e-12) | stopping.Iterations(50),
        (stop,),
    )
    assert r.status.name == "INTERRUPTED"
    assert r.n_features == P
    assert r.columns.max() < P


def test_progress_says_where_another_solve_can_begin_also_in_lifted_coordinates() -> None:
    X, y = plain_data()
    norm = norms.LatentGroups([[0, 1, 2], [2, 3, 4], [4, 5]])
    starts = []
    result = solve_sum(
        X, y, norm=norm, level=1.0, observers=[lambda at: starts.append(at.warm_start())]
    )
    last = starts[-1]
    np.testing.assert_array_equal(np.sort(last.columns), result.columns)
    again = solve_sum(X, y, norm=norm, level=1.0, warm_start=last)
    assert again.iterations == 0
    assert again.converged


@pytest.mark.parametrize(
    "norm",
    [
        LatentGroups([[0, 1, 2, 3], [3, 4, 5], list(range(5, 15))]),
        Union([norms.L1(), norms.Groups([list(range(5)), list(range(5, 15))])]),
    ],
)
def test_free_columns_are_partialled_out(norm):
    assert_leaves_free_columns_alone(norm)


def test_moments_have_the_solution_of_the_rows():
    overlapping = LatentGroups([[0, 1, 2], [2, 3, 4], [5, 6]])
    assert_moments_have_the_solution_of_the_rows(overlapping, "penalized")


def test_a_result_predicts_what_it_fitted():
    assert_predicts_what_it_fitted(LatentGroups([[0, 1], [1, 2]]))


def test_both_bounds_are_those_of_the_run():
    sets = LatentGroups([[j, j + 1, j + 2] for j in range(0, 28, 2)])
    assert_verified(VERIFIED, Y, norm=sets, level=20.0, fit_intercept=True)


def test_an_interrupt_returns_a_point_with_its_own_certificate():
    sets = LatentGroups([list(range(j, j + 4)) for j in range(0, 397, 2)])
    assert_interrupts_return_certified_points("squared", sets, "penalized", 1.0, None)


@pytest.mark.parametrize("kill_after", [0, 1, 3])
def test_killed_and_resumed_is_the_same_answer(kill_after, tmp_path):
    sets = LatentGroups([list(range(j, j + 4)) for j in range(0, 87, 2)])
    solver = ColumnGeneration(batch=3)
    assert_resumes(solver, sets, "penalized", {"level": 6.0}, kill_after, tmp_path)


def test_equal_groups_have_equal_fingerprints_in_any_order():
    groups = {"b": [3, 4], "a": [0, 1, 2]}
    same = {"a": [0, 1, 2], "b": [3, 4]}
    assert digest(LatentGroups(groups)) == digest(LatentGroups(same))
    assert digest(LatentGroups(groups)) != digest(LatentGroups({**same, "b": [3, 5]}))


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("form", ["penalized", "squared"])
def test_tiny_problems_end_after_a_number_of_steps(loss, form, monkeypatch):
    norm = Union([norms.KSupport(7), norms.KSupport(2)])
    assert_ends_after_a_number_of_steps(norm, loss, form, monkeypatch)


@pytest.mark.parametrize(
    "norm",
    [LatentGroups([[0, 1], [1, 2, 3], [3, 4]]), Union([norms.L1(), norms.L2()]), Chains(2)],
    ids=lambda norm: type(norm).__name__,
)
def test_gauges_and_polars_scale_with_what_they_are_of(norm):
    assert_scales(norm)
