"""Lines whose change no answer can show: which of two ways is taken, each with the reason.

Both ways lead to the same answer, by tests of each or by a proof that is told here; what differs
is time or memory, and that is measured in ``benchmarks/``, never by a test. A drawn change of
such a line is drawn again. What is listed has survived once and was read; nothing is listed
because a test would be hard to write. Slight changes of settings are left out by a rule in
``operators.py``, not line by line.
"""

from __future__ import annotations

SETTINGS = "sizes from which a way is quicker, chosen by benchmarks/tuning"
QUICKER = "which of two tested ways is quicker"
SAME = "both sides are equal in exact arithmetic where the change would show"
ROUNDING = "a tolerance some digits above or below rounding"
WASTE = "does more work than needed, with the same answer"

#: File of the core: part of its line (as written there), and why. "" stands for the whole file.
WAYS: dict[str, dict[str, str]] = {
    "data/blocks.py": {
        "isinstance(other, (DenseBlock, SparseBlock)) and not": QUICKER,
        "self.nonzeros is None and other.nonzeros is None": QUICKER,
    },
    "masters/compressed.py": {
        "self.master.solve(smaller, weights, 0.0": SAME,
    },
    "masters/newton.py": {"newton = 10 * n_samples * size": QUICKER},
    "norms/ksupport.py": {"(k - ones) >= tails": SAME},
    "masters/accelerated_gradient.py": {"max(self.growth * lipschitz, min(local": QUICKER},
    "masters/tuning.py": {"": SETTINGS},
    "data/limits.py": {"": SETTINGS},
    "data/cached_block.py": {"longer.inner.keeps_gram and type(": WASTE},
    "data/compressed.py": {
        "LIMITS.dense_from * count": QUICKER,
        "4 * keep.size <= 3 * weights.size": QUICKER,
        "stored < 2**31": "needs 2^31 stored entries to show",
    },
    "data/standardized.py": {"            (squares != 0) | (means != 0)": WASTE},
    "losses/pieces.py": {"return n_samples <= PIECE or": QUICKER},
    "losses/shift.py": {
        "if abs(slope) < abs(best_slope)": SAME,
        "if proposal == b or abs(proposal) > 1e8": SAME,
    },
    "masters/active_set.py": {"trial.refit.gap > 0.5 * before": QUICKER},
    "masters/choose.py": {"or size <= TUNING": QUICKER, "size <= TUNING.coupled": QUICKER},
    "masters/coupled_newton.py": {
        "few = size * size": QUICKER,
        "np.trace(H)) / H.shape[0]": "H is square",
    },
    "masters/dual_interior.py": {"(lengths / limit).max(initial=0.0)": "used where above 1 only"},
    "masters/model_newton.py": {
        "self.master.solve(model, weights, 0.0": "a problem without an intercept",
    },
    "masters/sequential_qp.py": {
        "damping, idle, steps = 0.0, 0, begun": QUICKER,
        "idle < TUNING.damped_patience": QUICKER,
    },
    "masters/sign_pivoting.py": {"if not rows.size and status is not": QUICKER},
    "masters/working_sets.py": {
        "stalled = 0 if trial.refit.gap": QUICKER,
        "4 * chosen.size >= 3 * size": QUICKER,
    },
    "norms/forms.py": {"abs(excess) <= 4e-16 * scale": ROUNDING},
    "norms/lift.py": {
        "MAX_DENSE_FACTORS =": SETTINGS,
        "wanted = min(max(least, count), rating.size)": WASTE,
    },
    "norms/parameters.py": {"_all_values(self)[1:]": WASTE},
    "norms/vectors.py": {"1e-200 < plain < 1e200": "both lengths are right to rounding"},
    "problem/free.py": {"if unpenalized is None and not any(": WASTE},
    "problem/pricing.py": {
        "np.max(threshold) <= 0 or": QUICKER,
        "> threshold * (1 - 1e-12)": ROUNDING,
    },
    "problem/problem.py": {"if not self.tau or not weights.size": WASTE},
    "problem/result.py": {"self.search_gap <= enough < self.gap": SAME},
    "solvers/fingerprint.py": {
        "isinstance(part, np.ndarray) and part.dtype": SAME,
        "if depth > 20": "how deep is too deep",
    },
    "solvers/column_generation.py": {"best.size >= count and self.batch != 1": QUICKER},
}


def is_way(file: str, line: str) -> bool:
    """Return whether the line of this file of the core is one of those."""
    return any(part in line for part in WAYS.get(file, {}))
