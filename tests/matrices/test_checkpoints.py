"""Checkpoints of fits of matrices: a killed solve continues to the same answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, norms, solvers
from atomlearn.solvers import Checkpoint
from tests.core.solvers.test_checkpoint import _Kill, _Killed
from tests.oracles.sums import solve_sum


@pytest.mark.parametrize("kill_after", [0, 2, 5])
def test_matrix_fits_go_on_from_their_factors(kill_after: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # Beyond 1024 entries: smaller matrices are held whole and take few iterations.
    low = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30))
    flat = rng.permutation(1200)[:700]
    design = designs.Entries(flat // 30, flat % 30, (40, 30))
    target = low.ravel()[flat] + 5.0 * (rng.random(700) < 0.03)
    norm = norms.Union([norms.TraceNorm(), norms.Scaled(norms.L1(), 0.3)])
    kind: dict[str, Any] = {"norm": norm, "level": 3.0, "tol": 1e-8, "max_iter": 5000}
    kind["solver"] = solvers.MatrixGeneration(batch=1, columns=5, tol=1e-8)
    whole = solve_sum(design, target, **kind)
    assert whole.converged
    assert whole.iterations > kill_after
    keep = [Checkpoint(tmp_path, every_s=0), _Kill(kill_after)]
    with pytest.raises(_Killed):
        solve_sum(design, target, **kind, observers=keep)
    resumed = solve_sum(design, target, **kind, observers=[Checkpoint(tmp_path)])
    assert resumed.converged
    assert_allclose(resumed.objective, whole.objective, rtol=2e-8)
    again = solve_sum(design, target, **kind, observers=[Checkpoint(tmp_path)])
    assert again.passes <= resumed.passes + 2
