"""The experiment of completion: k = 1 is the trace norm, and errors are of unseen entries."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.norms import SpectralKSupport, TraceNorm
from benchmarks.matrices.spectral_completion import completed, drawn, errors, main


def test_k_one_is_the_trace_norm() -> None:
    _, noisy = drawn(12, 0)
    seen = np.sort(np.random.default_rng(0).permutation(144)[:80])
    alphas = np.array([0.05, 0.01, 0.002])
    ours = completed(noisy, seen, SpectralKSupport(1), alphas)
    trace = completed(noisy, seen, TraceNorm(), alphas)
    for first, second in zip(ours, trace, strict=True):
        assert first.converged
        assert second.converged
        assert_allclose(first.objective, second.objective, rtol=2e-3)
        assert_allclose(first.coef, second.coef, atol=0.05)


def test_errors_are_those_of_entries_that_nobody_saw() -> None:
    test, k = errors({"side": 12, "levels": 3}, 0.8, 0)
    assert k in test
    # Without a fit the error is 1. The trace norm, k = 1, needs the fewest entries here.
    assert 0.0 < test[1] < 0.9
    assert all(0.0 < error < 1.1 for error in test.values())


def test_the_table_has_a_row_for_each_share(capsys: pytest.CaptureFixture[str]) -> None:
    main({"side": 8, "shares": (0.5, 0.7), "draws": 2, "levels": 1})
    assert len(capsys.readouterr().out.splitlines()) == 4
