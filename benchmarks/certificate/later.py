"""Later problems: offsets next to large targets, late entries with weights of any size, float32.

    python -m benchmarks.certificate.campaign --seconds 600 --seed 10000000

tries them among the others: seeds from ``FIRST`` on draw these kinds, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from atomlearn import AtomicRegressor, losses, norms
from atomlearn.core.interfaces.scores import ArrayScores
from benchmarks.certificate.bounds import Long
from benchmarks.certificate.drawn import FORMS, LIMIT, Task, _weights, amount, norm_of

#: The first seed with these kinds: seeds below draw what they always drew.
FIRST = 10_000_000


def draw_later(seed: int) -> Task:
    """Return a problem of one of these kinds."""
    rng = np.random.default_rng([12, seed])
    return (_offsets, _late, _single)[int(rng.integers(3))](rng, seed)


def _drawn(rng: Any, y: np.ndarray, X: np.ndarray, name: str) -> tuple[Any, ...]:
    """Return the kind, norm, arguments, gauge, polar and slack of a problem of differences."""
    norm_name, norm, gauge, polar = norm_of(rng, X.shape[1])
    form = FORMS[int(rng.integers(3))]
    key = "radius" if form == "constrained" else "level"
    arguments = {"form": form, "tau": 0.0, key: amount(rng, form, name, norm, X, y)}
    slack = 2e-8 if norm_name in ("Chains", "LatentGroups", "Union") else 0.0
    return (name, norm_name, form), norm, arguments, gauge, polar, slack


@dataclass(frozen=True)
class Apart(Task):
    """Targets less offsets in two long doubles: ``high`` + ``low`` is the difference itself."""

    high: Any = None
    low: Any = None

    def judged(self, result: Any) -> tuple[Any, Any]:
        own = {name: value for name, value in self.arguments.items() if name != "offset"}
        found = SimpleNamespace(coef=result.coef, intercept=0.0, objective=result.objective)
        y = (self.high - Long(result.intercept)) + self.low
        return Task(self.seed, self.kind, self.X, self.dense, y, self.weight, self.loss, self.norm,
                    own, self.gauge, self.slack, self.polar).judged(found)  # fmt: skip


def _offsets(rng: Any, seed: int) -> Task:
    """Differences of large targets and offsets."""
    n, p, name = (
        int(rng.integers(3, 26)),
        int(rng.integers(1, 9)),
        ("squared", "huber")[int(rng.integers(2))],
    )
    X, unit = rng.standard_normal((n, p)), 10.0 ** int(rng.integers(-3, 4))
    rest = unit * (X[:, 0] + 0.5 * rng.standard_normal(n))
    size = 10.0 ** rng.uniform(3, 12)
    offset = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 12) - size * (rng.random() < 0.5)
    y = size * (rng.random() < 0.8) + rest + offset * (rng.random() < 0.7)
    loss: Any = losses.Huber(unit) if name == "huber" else losses.Squared()
    target, known = y.astype(Long), offset.astype(Long)
    high = target - known
    back = high - target
    low = (target - (high - back)) - (known + back)
    left = np.asarray(high, dtype=np.float64)
    kind, norm, arguments, gauge, polar, slack = _drawn(rng, left - left.mean(), X, name)
    weight = _weights(rng, n)
    arguments |= {
        "fit_intercept": bool(rng.random() < 0.8),
        "sample_weight": weight,
        "offset": offset,
    }
    return Apart(seed, (*kind, "offsets"), X, X, y, weight, loss, norm, arguments, gauge, slack,
                 polar, high=high, low=low)  # fmt: skip


@dataclass(frozen=True)
class Late(Task):
    """Cox with late entries and weights, by sums over each risk set."""

    def each(self, y: Any, z: Any) -> Any:
        s, total = self.weight.astype(Long), Long(0)
        for time in np.unique(y["time"][y["event"] & (s > 0)]):
            here = y["event"] & (y["time"] == time) & (s > 0)
            at_risk = (y["entry"] < time) & (y["time"] >= time) & (s > 0)
            count, d = int(here.sum()), s[here].sum()
            top = z[at_risk].max()
            hazard = s * np.exp(np.where(at_risk, z - top, -np.inf))
            shares = np.arange(count) / Long(count) if self.loss.ties == "efron" else [Long(0)]
            for share in shares:
                kept = np.where(here, 1 - share, 1)
                omega = d / len(shares)
                total += omega * (np.log((kept * hazard).sum() / (d * (1 - share))) + top)
            total -= (s * z)[here].sum()
        return total / s.sum()

    def cancels(self) -> float:
        return 1e-16 * float(self.weight.sum())


def _late(rng: Any, seed: int) -> Task:
    """Survival with late entries and weights from 1e-4 to 3e5."""
    n, p = int(rng.integers(4, 26)), int(rng.integers(1, 7))
    X = rng.standard_normal((n, p))
    time = np.ceil(rng.exponential(size=n) * (4 if rng.random() < 0.5 else 100))
    entry = np.maximum(time - np.ceil(rng.exponential(size=n) * 3), 0.0)
    event = (rng.random(n) < 0.6) | (np.arange(n) == 0)
    weight = 10.0 ** rng.uniform(-4, 5.5, n) if rng.random() < 0.7 else np.ones(n)
    weight[1:] *= rng.random(n - 1) < 0.9
    y = losses.survival_target(event, time, entry)
    loss = losses.Cox(ties=("efron", "breslow")[int(rng.integers(2))])
    norm = (norms.L1(), norms.L2(), norms.KSupport(max(1, p // 2)))[int(rng.integers(3))]
    form = FORMS[int(rng.integers(3))]
    key = "radius" if form == "constrained" else "level"
    polar = norm.on(p).polar(ArrayScores(X.T @ loss.gradient(y, np.zeros(n), weight))) or 1.0
    value = float(loss.value(y, np.zeros(n), weight)) or 1.0
    size = {"penalized": polar, "squared": polar**2 / value, "constrained": value / polar}[form]
    arguments = {"form": form, "tau": 0.0, "sample_weight": weight, "fit_intercept": False,
                 key: size * float(np.exp(rng.uniform(-5, 0.2)))}  # fmt: skip
    kind = ("cox", type(norm).__name__, form, "late")
    return Late(seed, kind, X, X, y, weight, loss, norm, arguments, norm.on(p).value)


@dataclass(frozen=True)
class Estimated(Task):
    """A fit by an estimator, judged by the coefficients that a user gets."""

    def run(self, gap: float, solver: Any = None, limit: float = LIMIT) -> Any:
        amounts = {"form": self.arguments["form"], "radius": self.arguments.get("radius", 1.0)}
        model = AtomicRegressor(self.norm, self.arguments.get("level", 1.0), **amounts,
                                fit_intercept=self.arguments["fit_intercept"], loss=self.loss,
                                tol=gap, time_limit=limit).fit(self.X, self.y)  # fmt: skip
        return SimpleNamespace(coef=model.coef_, intercept=model.intercept_, gap=model.gap_,
                               objective=model.objective_, status=model.status_)  # fmt: skip


def _single(rng: Any, seed: int) -> Task:
    """float32 columns, some of them far from zero, given to an estimator."""
    n, p, name = (
        int(rng.integers(4, 26)),
        int(rng.integers(1, 9)),
        ("squared", "huber")[int(rng.integers(2))],
    )
    X = rng.standard_normal((n, p)) + 10.0 ** rng.uniform(0, 6, p) * (rng.random(p) < 0.4)
    X = (X * 10.0 ** int(rng.integers(-3, 4))).astype(np.float32)
    dense, unit = X.astype(np.float64), 10.0 ** int(rng.integers(-3, 4))
    signal = dense[:, 0] - dense[:, 0].mean()
    y = unit * (signal / (signal.std() or 1.0) + 0.5 * rng.standard_normal(n))
    y += unit * 1e6 * (rng.random() < 0.2)
    loss: Any = losses.Huber(unit) if name == "huber" else losses.Squared()
    kind, norm, arguments, gauge, polar, slack = _drawn(rng, y - y.mean(), dense, name)
    key = "radius" if "radius" in arguments else "level"
    if key == "level":
        arguments[key] /= n
    arguments |= {"fit_intercept": bool(rng.random() < 0.8)}
    weight = np.full(n, 1.0 / n)
    return Estimated(seed, (*kind, "float32"), X, dense, y, weight, loss, norm, arguments, gauge,
                     slack, polar)  # fmt: skip
