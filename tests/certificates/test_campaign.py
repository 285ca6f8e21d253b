"""Some problems of ``benchmarks/certificate/campaign.py`` in each run of the suite.

CAMPAIGN=5000 tries so many seeds; those of the campaign itself are others.
"""

import os
import time
import warnings

import numpy as np
import pytest

from atomlearn import losses
from atomlearn.core import ArrayScores
from benchmarks.certificate import bounds
from benchmarks.certificate.campaign import solved
from benchmarks.certificate.drawn import draw, per_sample

SEEDS = int(os.environ.get("CAMPAIGN", "120"))
FIRST = 10_000_000


def at(seed, monkeypatch):
    # Limits of the processor: a busy machine is not late.
    monkeypatch.setattr(time, "monotonic", time.process_time)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solved(seed)


@pytest.mark.parametrize("start", range(0, SEEDS, 40))
def test_no_gap_is_wrong(start, monkeypatch):
    rows = [at(FIRST + seed, monkeypatch) for seed in range(start, min(start + 40, SEEDS))]
    assert not [row for row in rows if row["verdict"] in ("wrong", "failed") or row["late"]]
    # The bounds are of use: without them nothing would be said.
    assert sum(row["verdict"] == "proved" for row in rows) > 0.6 * len(rows)


@pytest.mark.parametrize(
    "seed",
    [
        2655,  # a fit that is perfect in floats had the gap 0.0
        5604,  # a Cholesky factor that rounding made impossible was an exception
    ],
)
def test_what_the_campaign_found(seed, monkeypatch):
    row = at(seed, monkeypatch)
    assert row["verdict"] not in ("wrong", "failed"), row


@pytest.mark.parametrize("name", bounds.KNOWN)
def test_conjugates_of_the_bounds(name):
    rng = np.random.default_rng(0)
    made = {"huber": losses.Huber(0.7), "tweedie": losses.Tweedie(1.4),
            "negative_binomial": losses.NegativeBinomial(2.0)}  # fmt: skip
    loss = made.get(name) or losses.as_loss(name)
    z = rng.standard_normal(50).astype(bounds.Long)
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    if loss.task != "classification":
        y = rng.poisson(2.0, 50) + 0.5 * (name == "gamma")
    u = bounds.slope(loss, y, z)
    # Fenchel's inequality holds, with equality at the slope.
    dual = bounds._at(loss, y, u, z, bounds.Long(1))
    np.testing.assert_allclose(per_sample(loss, y, z) + dual, u * z, atol=1e-15)
    other = rng.standard_normal(50)
    assert (per_sample(loss, y, other) + dual - u * other >= -1e-15).all()


def test_polars_of_the_bounds_are_those_of_the_norms():
    rng = np.random.default_rng(1)
    for seed in range(200):
        task = draw(seed)
        p = task.dense.shape[1]
        z = rng.standard_normal(p)
        mine = float(task.polar(z.astype(bounds.Long)))
        np.testing.assert_allclose(task.norm.on(p).polar(ArrayScores(z)), mine, rtol=1e-9)
        w = np.abs(z) * (rng.random(p) < 0.6)
        np.testing.assert_allclose(float(task.gauge(w)), task.norm.on(p).value(w), rtol=2e-6)
