"""Times, counts and classes as they come: a survival set, words of newsgroups, pathways of p53.

    python -m benchmarks.responses.real [--only counts] [--out FOLDER]

survival : made with the structure of the lymphoma set of Rosenwald et al. 2002 (240 patients, 7399
    probes, 138 deaths): modules of correlated genes, three of which matter, ages and stages free.
counts : how often a common word occurs in posts of 20 newsgroups, from which others occur; the
    length of a post is its exposure. By date: 11,314 posts to learn from, 7,532 to predict.
pathways : 50 samples with p53 mutated or not, 4,301 genes in 308 pathways that overlap; mean and
    spread of each array are free.

The data are in the folder of ATOMLEARN_DATA, else in data/. Held-out figures are of parts that no
fit has seen; the others' are at the best level of the same grid, but for the ridge of counts, whose
penalty was fixed and not tuned.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from atomlearn import AtomicClassifier, AtomicRegressorCV, AtomicSurvivalCV, norms
from atomlearn.losses import survival_target
from benchmarks.harness import Options, Table
from benchmarks.harness.options import add_options
from benchmarks.harness.real_data import data_file

DATA = data_file("")


def seconds_of(fit: Any) -> tuple[Any, float]:
    """Return what a call gives, and how long it took."""
    began = time.perf_counter()
    return fit(), time.perf_counter() - began


def patients(n: int = 240, p: int = 7399, size: int = 20) -> tuple[Any, Any, Any]:
    """Return expression, (age, stage), and structured times, 58% of them of deaths."""
    rng = np.random.default_rng(2002)
    module = rng.standard_normal((n, -(-p // size)))
    X = 0.7 * np.repeat(module, size, axis=1)[:, :p] + 0.7 * rng.standard_normal((n, p))
    covariates = np.column_stack([rng.normal(62.0, 12.0, n), rng.integers(1, 5, n)])
    risk = (
        module[:, :3] @ [0.8, -0.6, 0.5] + 0.03 * (covariates[:, 0] - 62) + 0.3 * covariates[:, 1]
    )
    times, until = rng.weibull(0.8, n) * 6.0 * np.exp(-risk + 0.7), rng.uniform(1.0, 12.0, n)
    return X, covariates, survival_target(times <= until, np.minimum(times, until))


def survival(table: Table) -> None:
    """Cox with l1 and with modules as groups beside free covariates; Coxnet at the same levels."""
    X, covariates, y = patients()
    whole = np.hstack([X, (covariates - covariates.mean(axis=0)) / covariates.std(axis=0)])
    train, test = np.arange(160), np.arange(160, 240)
    free = [whole.shape[1] - 2, whole.shape[1] - 1]
    modules = norms.Groups([*np.array_split(np.arange(7400), 370)[:-1], np.arange(7380, 7399)])
    for name, norm in (("l1", norms.L1()), ("modules", modules)):
        model = AtomicSurvivalCV(norm, n_alphas=20, alpha_ratio=0.2, unpenalized=free)
        _, took = seconds_of(lambda model=model: model.fit(whole[train], y[train]))
        table.add(
            set="survival 240 x 7401", model=f"AtomicSurvivalCV, {name}", seconds=took,
            score=model.score(whole[test], y[test]), score_name="concordance",
            selected=model.selected_.size, relative_gap=model.results_[0].relative_gap,
            status=model.status_.name,
        )  # fmt: skip
    try:
        from sksurv.linear_model import CoxnetSurvivalAnalysis
    except ImportError:
        return
    factors = np.ones(whole.shape[1])
    factors[free] = 0.0
    given = np.array([(e, t) for e, t in zip(y["event"], y["time"], strict=True)], dtype="?,f8")
    other = CoxnetSurvivalAnalysis(
        n_alphas=20, alpha_min_ratio=0.2, l1_ratio=1.0, penalty_factor=factors
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, took = seconds_of(lambda: other.fit(whole[train], given[train]))
    scores = [other.predict(whole[test], alpha=alpha) for alpha in other.alphas_]
    from sksurv.metrics import concordance_index_censored

    best = max(
        concordance_index_censored(y["event"][test], y["time"][test], one)[0] for one in scores
    )
    table.add(
        set="survival 240 x 7401", model="Coxnet, one path, best on the test part", seconds=took,
        score=best, score_name="concordance", selected=-1, status="",
    )  # fmt: skip


def counts(table: Table) -> None:
    """Poisson with l1, with and without the exposure; scikit-learn with a ridge on 2000 words."""
    held = np.load(DATA / "20news" / "20news_counts.npz", allow_pickle=True)
    entries = np.ones(held["indices"].size) if held["data"].size == 1 else held["data"]
    words = sp.csr_matrix((entries, held["indices"], held["indptr"]), shape=tuple(held["shape"]))
    n_train = int(held["n_train"])
    length = np.asarray(words.sum(axis=1)).ravel()
    by_column, some = words.tocsc(), length > 0
    # The common word that differs most from post to post: most variance for its mean.
    mean = np.asarray(by_column.mean(axis=0)).ravel()
    spread = np.asarray(by_column.multiply(by_column).mean(axis=0)).ravel() - mean**2
    common = np.where(mean > 0.2, spread / np.maximum(mean, 1e-12), 0.0)
    word = int(np.argsort(-common)[3])
    y = np.asarray(by_column[:, [word]].todense()).ravel().astype(float)
    others = np.delete(np.arange(words.shape[1]), word)
    X = by_column[:, others]
    X.data[:] = 1.0
    X = X[:, np.diff(X.indptr) >= 20]
    first = np.arange(words.shape[0]) < n_train
    train, test = np.flatnonzero(first & some), np.flatnonzero(~first & some)
    X, log_length = X.tocsr(), np.log(np.maximum(length, 1.0))
    for name, offset in (("length as exposure", log_length), ("no exposure", None)):
        model = AtomicRegressorCV(loss="poisson", n_alphas=20, cv=3, alpha_ratio=0.02)
        fit_offset = None if offset is None else offset[train]
        _, took = seconds_of(
            lambda model=model, o=fit_offset: model.fit(X[train].tocsc(), y[train], offset=o)
        )
        mean_there = model.predict(X[test], None if offset is None else offset[test])
        table.add(
            set=f"counts {train.size} x {X.shape[1]}", model=f"AtomicRegressorCV, {name}",
            seconds=took, score=float(d2_tweedie_score(y[test], mean_there, power=1)),
            score_name="D^2", selected=model.selected_.size,
            relative_gap=model.results_[0].relative_gap, status=model.status_.name,
        )  # fmt: skip
    top = np.argsort(-np.asarray(X.sum(axis=0)).ravel())[:2000]
    other = PoissonRegressor(alpha=1e-2, max_iter=300)
    weight, rate = length[train], y[train] / np.maximum(length[train], 1.0)
    _, took = seconds_of(lambda: other.fit(X[train][:, top], rate, sample_weight=weight))
    there = other.predict(X[test][:, top]) * np.maximum(length[test], 1.0)
    table.add(
        set=f"counts {train.size} x 2000", model="scikit-learn PoissonRegressor, rates, ridge",
        seconds=took, score=float(d2_tweedie_score(y[test], there, power=1)), score_name="D^2",
        selected=2000, status="",
    )  # fmt: skip


def pathways(table: Table) -> None:
    """Latent groups of pathways beside free array statistics; l1 in their place."""
    held = np.load(DATA / "groups" / "p53_pathways.npz", allow_pickle=True)
    X, y = held["X"], np.asarray(held["y"]).astype(int)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    arrays = np.column_stack([held["X"].mean(axis=1), held["X"].std(axis=1)])
    arrays = (arrays - arrays.mean(axis=0)) / arrays.std(axis=0)
    whole, p = np.hstack([X, arrays]), X.shape[1]
    starts, members = held["group_indptr"], held["group_indices"]
    sets = [members[starts[g] : starts[g + 1]] for g in range(starts.size - 1)]
    latent = norms.LatentGroups(sets, weights=[np.sqrt(len(one)) for one in sets])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for name, norm, alpha in (("pathways", latent, 0.02), ("l1", norms.L1(), 0.1)):
        model = AtomicClassifier(norm, alpha=alpha, unpenalized=[p, p + 1])
        _, took = seconds_of(lambda model=model: model.fit(whole, y))
        shares = cross_val_predict(model, whole, y, cv=folds, method="predict")
        table.add(
            set="pathways 50 x 4303", model=f"AtomicClassifier, {name}", seconds=took,
            score=float((shares == y).mean()), score_name="accuracy of 5 folds",
            selected=model.selected_.size, relative_gap=model.results_[0].relative_gap,
            status=model.status_.name,
        )  # fmt: skip


PARTS = {"survival": survival, "counts": counts, "pathways": pathways}


def main() -> None:
    """All sets, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--only", default="", help="sets whose name begins so")
    given = parser.parse_args()
    with Table("responses_real", Options(given.smoke, given.repeats, given.out)) as table:
        for name, part in PARTS.items():
            if name.startswith(given.only):
                part(table)


if __name__ == "__main__":
    main()
