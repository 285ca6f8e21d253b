"""Forks, threads and pickles: the same answers, no deadlock, and no data in a pickle."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from atomlearn import norms, solvers
from tests.oracles.sums import solve_sum

SCRIPT = textwrap.dedent(
    """
    import multiprocessing, sys
    import numpy as np
    from joblib import Parallel, delayed
    from atomlearn import _kernels, norms, solve

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1200))
    y = X[:, :5].sum(1) + rng.normal(size=1000)

    def fit(_):
        result = solve(X, y, norm=norms.KSupport(k=5), form="squared", alpha=0.06, tol=1e-8)
        return result.coef, _kernels.max_threads()

    if __name__ == "__main__":
        here, threads = fit(0)
        assert threads == 2, threads  # the pool of threads exists: a fork loses it
        # A fork, new processes (loky's are spawned), threads.
        with multiprocessing.get_context("fork").Pool(2) as pool:
            forked = pool.map(fit, range(2))
        assert [threads for _, threads in forked] == [1, 1], forked
        forked += Parallel(2, backend="loky")(delayed(fit)(i) for i in range(2))
        # One thread ends before another: BLAS may not have its own threads again by then.
        forked += Parallel(2, backend="threading")(delayed(fit)(i) for i in range(6))
        for coef, _ in forked:
            assert np.array_equal(coef, here)
    """
)


def test_other_processes_and_threads_end_with_the_same_coefficients(
    tmp_path,
):
    script = tmp_path / "fits.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,  # a deadlock is a failure, not a test that never ends
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("norm", "solver"),
    [(norms.L1(), None), (norms.KSupport(k=3), solvers.AtomGeneration()), (norms.L2(), None)],
)
def test_a_pickled_result_holds_its_point_and_not_the_data(norm, solver):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 500))
    y = X[:, :3].sum(axis=1) + 0.1 * rng.normal(size=200)
    result = solve_sum(X, y, norm=norm, form="squared", level=30.0, solver=solver, tol=1e-6)
    pickled = pickle.dumps(result)
    assert len(pickled) < X.nbytes / 8
    back = pickle.loads(pickled)
    assert back.status is result.status
    np.testing.assert_array_equal(back.coef, result.coef)
    again = solve_sum(X, y, norm=norm, form="squared", level=30.0, solver=solver, warm_start=back)
    assert again.iterations <= 1
    assert pickle.dumps(back) == pickle.dumps(pickle.loads(pickle.dumps(back)))
