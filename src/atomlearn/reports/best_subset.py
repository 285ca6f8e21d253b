"""What a search for the best subset proved, for the page: sentences, near subsets, both bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from atomlearn.core import Array
from atomlearn.estimators.subsets import SubsetModel
from atomlearn.findings.twins import Twins
from atomlearn.reports.drawing import Display, percent
from atomlearn.reports.view import View
from atomlearn.subsets.result import SubsetResult, SubsetStatus

#: What the bound does not say.
NOT_THE_WORLD = (
    "Best is meant by the objective on these rows, the loss with its ridge. It is no statement "
    "about the world: other rows may have another best subset, features that were not measured are "
    "in none, and how well the model predicts is known from held-out rows alone."
)


@dataclass
class BoundsDisplay(Display):
    """The best objective found, and the bound on that of all subsets, over the seconds of a search.

    References
    ----------
    H. Hazimeh, R. Mazumder, A. Saab. Sparse regression at scale: branch-and-bound rooted in
    first-order optimization. Mathematical Programming 196 (2022) 347-388.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import SubsetRegressor, reports
    >>> model = SubsetRegressor(n_features=4, standardize=True).fit(*load_diabetes(return_X_y=True))
    >>> reports.BoundsDisplay.from_estimator(model).ax_.get_xlabel()
    'seconds'
    """

    seconds: Array
    objective: Array
    lower_bound: Array
    title = "How the proof came about"
    part = "proof"
    about = (
        "The objective of the best subset found so far, and the bound below which no subset lies. "
        "Where the lines meet, the subset is proved to be the best."
    )
    needs = "has no bounds on subsets; fit SubsetRegressor or SubsetClassifier"

    @classmethod
    def of_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, names: Any = None
    ) -> Self | None:
        """Return both bounds of a model of the best subset."""
        try:
            history = estimator.result_.history
            lines = [(at.seconds, at.objective, at.lower_bound) for at in history]
        except AttributeError:
            return None
        return cls(*np.transpose(lines))

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        kind = {"drawstyle": "steps-post", "marker": "o", "markevery": [-1], **options}
        self.lines_ = [
            ax.plot(self.seconds, values, label=label, **kind)[0]
            for values, label in (
                (self.objective, "best subset found"),
                (self.lower_bound, "bound on all subsets"),
            )
        ]
        ax.set(xlabel="seconds", ylabel="objective")
        ax.legend(loc="center left")


@dataclass(frozen=True, slots=True)
class SubsetProof:
    """What is proved of the best subset.

    over : what the bound is over; sentences : what is proved, and what is not; near : of the other
    subsets nearly as good, what they lack of the best one, what they have instead, and by how much
    their objective is larger; twins : the same where that is one column; bounds : over time.
    """

    over: str
    sentences: tuple[str, ...]
    near: Sequence[tuple[str, str, str]] = ()
    twins: Sequence[Twins] = ()
    bounds: Sequence[BoundsDisplay] = ()

    @classmethod
    def of(cls, view: View, refitted: bool) -> Self | None:
        """Return what the search of a model of the best subset proved, None of other models.

        refitted : whether another subset was scored on held-out rows.
        """
        model = view.model
        if not isinstance(model, SubsetModel):
            return None
        result = model.result_
        names = model.unit_names(view.names)
        unit = "feature" if model.groups is None else "group"
        k = f"{result.n_features:,} {unit}{'' if result.n_features == 1 else 's'}"
        said = [_of_all(result, k), *_of_single(result, k, unit, names)]
        best = result.columns if result.groups is None else result.groups
        near = []
        found = list[Twins]()
        for each in (result.near or ())[1:]:
            gone = np.setdiff1d(best, each.columns).tolist()
            lost, come = (
                ", ".join(names[at] for at in part)
                for part in (gone, np.setdiff1d(each.columns, best).tolist())
            )
            rise = each.objective / result.objective - 1.0
            near.append((lost, come, f"+{percent(rise)}"))
            if len(gone) == 1 and unit == "feature":
                found.append(Twins(gone[0], lost, (), rise, 0.0, (come,)))
        if result.near is not None:
            said.append(_of_near(len(near), percent(model.within), result.near_complete))
        if refitted:
            said.append(
                "The subset that held-out rows were scored with was found in the same way among "
                "the other rows, without a proof."
            )
        drawn = BoundsDisplay.of_estimator(model)
        said.append(NOT_THE_WORLD)
        return cls(f"all subsets of {k}", tuple(said), near, found, [drawn] if drawn else [])


def _of_all(result: SubsetResult, k: str) -> str:
    """Return what is proved of all other subsets."""
    bound = f"no subset of {k} has an objective more than {percent(result.gap)} lower"
    if result.status is SubsetStatus.OPTIMAL:
        return f"This is the best subset of {k}: {bound}."
    ended = str(result.status).partition(";")[0]
    return f"Not proved to be the best subset of {k} ({ended}). Proved so far: {bound}."


def _of_single(result: SubsetResult, k: str, unit: str, names: dict[int, str]) -> list[str]:
    """Return what is proved of single features: which are in no best subset, and which in all."""
    if result.open_columns is None:
        return [f"Nothing is proved of single {unit}s: they are too many to be listed."]
    n_open = result.open_columns.size - result.proved_in.size
    out = result.n_proved_out
    words = f"{out:,} of {out + result.open_columns.size:,} {unit}s are in no best model of {k}"
    said = [f"{words}; of {n_open:,} this is not known." if n_open else f"{words}."]
    if result.proved_in.size:
        said.append(
            f"In every best model: {', '.join(names[at] for at in result.proved_in.tolist())}."
        )
    return said


def _of_near(others: int, share: str, complete: bool) -> str:
    """Return how many subsets are nearly as good."""
    if not complete:
        return f"{others:,} others within {share} were found; there may be more of them."
    if not others:
        return f"Every other subset has an objective more than {share} higher."
    return (
        f"{others:,} other{' has' if others == 1 else 's have'} an objective at most {share} "
        "higher, and none is missing below: where features can stand for each other, no one subset "
        "is the model."
    )
