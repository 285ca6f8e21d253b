"""scikit-learn's own checks, whole: nothing is expected to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    KnockoffSelector,
    MatrixPursuit,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    SparseLowRank,
    SparsePCA,
    StabilitySelector,
    SubsetClassifier,
    SubsetRegressor,
    norms,
)
from atomlearn.designs import KernelOn

#: Every class, and once every way that its data take: parameters that change numbers only are
#: tested with the numbers, and chosen here to be quick.
ESTIMATORS = [
    AtomicRegressor(),
    AtomicClassifier(),
    AtomicRegressorCV(n_alphas=3, cv=2),
    AtomicClassifierCV(n_alphas=2, cv=2),
    FeatureGenerator(5, cv=2),
    AtomicRegressor("rows"),
    AtomicClassifier("rows", multi_class="multinomial"),
    SparseLowRank(tol=0.01),
    SparsePCA(n_features=2, n_components=1),
    MatrixPursuit(norms.KSupport(5)),
    FeatureGenerator(
        2, batch=1, C=10.0, features="splines", loss="squared", selected_tol=1e-10, standardize=True
    ),
    # The default kernels, three on each column, are in the checks of the regressor.
    MultipleKernelClassifier(
        [KernelOn("linear"), KernelOn("rbf")], form="penalized", loss="squared_hinge", rank=3
    ),
    MultipleKernelRegressor(rank=3),
    SubsetRegressor(2),
    SubsetClassifier(2, max_nodes=20),
    KnockoffSelector(n_alphas=3, cv=2, random_state=0),
    StabilitySelector(AtomicRegressor(alpha=0.1), n_resamples=4, random_state=0),
]
ARRAY_API = "SCIPY_ARRAY_API"

ARRAY_API_CHECK = """
import atomlearn
from sklearn.utils.estimator_checks import check_array_api_input
for name in ("AtomicRegressor", "AtomicClassifier", "AtomicRegressorCV", "AtomicClassifierCV",
             "FeatureGenerator"):
    estimator = getattr(atomlearn, name)()
    few = {"cv": 2, "n_alphas": 3}
    estimator.set_params(**{key: few[key] for key in few if key in estimator.get_params()})
    check_array_api_input(name, estimator, "numpy", expect_only_array_outputs=False)
    print(name)
"""


# Warnings that say what happened: hard little data sets, fewer features than asked for.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the optimum has only:UserWarning")
@pytest.mark.filterwarnings("ignore:n_features=:UserWarning")
@pytest.mark.filterwarnings("ignore:. columns are in 1 clusters:UserWarning")  # iris
@pytest.mark.filterwarnings("ignore:columns are strongly correlated:UserWarning")  # iris
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
# These come from the checks themselves.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scikit_learn_checks(estimator: Any) -> None:
    check_estimator(estimator)


def test_array_api_check() -> None:
    """The one check that the others skip: it wants SCIPY_ARRAY_API set before SciPy is loaded."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ARRAY_API_CHECK],
        env={**os.environ, ARRAY_API: "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "AtomicRegressor",
        "AtomicClassifier",
        "AtomicRegressorCV",
        "AtomicClassifierCV",
        "FeatureGenerator",
    ]
