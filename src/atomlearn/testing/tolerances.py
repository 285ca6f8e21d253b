"""Every tolerance of the test suites, with the reason for its size."""

from __future__ import annotations

#: Two float64 computations of one number by different but stable routes (a few hundred roundings).
SAME_FLOAT64 = 1e-12
#: The same for float32 data.
SAME_FLOAT32 = 1e-5
#: First derivative by fourth-order differences, step 1e-3: truncation 1e-12 f''''', rounding
#: 1e-16 / 1e-3.
FINITE_DIFFERENCE = 1e-9
#: Step of those differences.
FINITE_DIFFERENCE_STEP = 1e-3
#: A supremum over a grid of 1e-4 steps misses a smooth maximum by step^2 f'' / 8.
GRID_SUPREMUM = 1e-8
#: Interior-point oracles (CVXPY) at their default settings, relative.
ORACLE = 1e-6
#: Tolerance of Clarabel on problems whose default tolerance some processors do not reach.
CLARABEL = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 0.1 * ORACLE)
