"""Cross-validation of models of several targets, or of several classes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    Array,
    CrossValidation,
    Fold,
    Loss,
    Norm,
    PathResult,
    Rows,
    Score,
    Settings,
    Status,
    alpha_grid,
    check_levels,
    dense_part,
    ended_by,
    known_folds,
    largest_useful_alpha,
    mean_loss,
    part_of,
    path_of,
    solved,
)
from atomlearn.estimators.matrices.tasks import joint_problem
from atomlearn.estimators.targets import Checked, filled_for
from atomlearn.matrices.tasks import TaskProblem


@dataclass(frozen=True, slots=True)
class JointSearch:
    """Paths of the joint problem of all targets, one for each (penalty, fold).

    The intercepts of a fold are those of its training rows, so that each fold has its own problem.

    Attributes
    ----------
    model : CrossValidatedModel
        Its parameters make the problems.
    data : Checked
    loss : Loss
        The loss of all targets together.
    penalties : list of (Norm, float)
        Candidates for the norm, each with an l1_ratio.
    filled : list of Checked
        For a table with gaps: the data of each fold, with values imputed from its training rows.
        Empty for other data.
    """

    model: Any
    data: Checked
    loss: Loss
    penalties: list[tuple[Norm, float]]
    filled: Sequence[Checked] = ()

    def of_fold(self, fold: int, train: Rows) -> Checked:
        """Return the data of a fold, in which only its training rows ``train`` have weight.

        fold : the index of the fold.
        """
        data = self.filled[fold] if self.filled else self.data
        return replace(data, weight=self._weight_of(train))

    def problem(
        self, penalty: tuple[Norm, float], data_of_fold: Checked | None = None
    ) -> TaskProblem:
        """Return the joint problem of all rows, or of a fold, with weight 1 of the norm.

        penalty : the norm and l1_ratio; alpha is 1 / l1_ratio, so that alpha l1_ratio is 1.
        data_of_fold : the result of ``of_fold``, None for all rows.
        """
        data = self.data if data_of_fold is None else data_of_fold
        norm, l1_ratio = penalty
        return joint_problem(self.model, data, self.loss, norm, 1.0 / l1_ratio, l1_ratio)

    def levels(self) -> Array:
        """Return the weights of the norm (or radii) to try, (n_penalties, n_levels)."""
        model = self.model
        if model.alphas is not None:
            form = self.problem(self.penalties[0]).problem.regularizer.form
            # The weight of the norm is the share l1_ratio of alpha.
            alphas = check_levels(model.alphas, form, "alphas")
            return np.array([alphas * l1_ratio for _, l1_ratio in self.penalties])
        grids = []
        for penalty in self.penalties:
            problem = self.problem(penalty).problem
            form = problem.regularizer.form
            largest = largest_useful_alpha(problem)
            grids.append(alpha_grid(largest, model.n_alphas, model.alpha_ratio, form))
        return np.array(grids)

    def scored(
        self, folds: Sequence[Fold], score: Score | None, settings: Settings
    ) -> CrossValidation:
        """Return the held-out scores of all candidates.

        score : the function that scores decisions, None for minus the mean loss. settings : those
        of the fits. The table has four numbers for each (penalty, level, fold): score, passes,
        number of selected features and relative gap. After an interruption only complete folds
        count.
        """
        levels = self.levels()
        table = np.full((4, len(self.penalties), levels.shape[1], len(folds)), np.nan)
        paths: dict[tuple[int, int], PathResult] = {}
        status = Status.CONVERGED
        for fold, number in np.ndindex(len(folds), len(self.penalties)):
            train, test = folds[fold]
            data = self.of_fold(fold, train)
            task = self.problem(self.penalties[number], data)
            path = path_of(task.problem, levels[number], settings)
            paths[number, fold] = path
            path_status = ended_by([[path]])
            # If a search was interrupted before any level, its first level counts, so that at least
            # one candidate has a score.
            scored_path = path if path_status.is_converged else solved([path])[0]
            for level, result in enumerate(scored_path.results):
                W = result.coef.reshape(self.data.design.shape[1], -1)
                value = self._score(data, score, W, task.intercepts(W), test)
                selected = np.count_nonzero(W.any(axis=1))
                table[:, number, level, fold] = (
                    value,
                    result.passes,
                    selected,
                    result.relative_gap,
                )
            if not path_status.is_converged:
                status = path_status
                break
        # The paths by norm and fold, in the form of searches with one output.
        paths_of_norms = tuple(
            tuple((paths[number, fold],) for fold in range(len(folds)) if (number, fold) in paths)
            for number in range(len(self.penalties))
        )
        complete = np.arange(len(folds)) if status.is_converged else known_folds(table[0])
        n_passes = sum(path.passes for path in paths.values())
        norms = tuple(norm for norm, _ in self.penalties)
        ratios = tuple(l1_ratio for _, l1_ratio in self.penalties)
        scores, level_passes, n_selected, gaps = table[..., complete]
        return CrossValidation(
            norms,
            levels,
            scores,
            level_passes,
            n_selected,
            gaps,
            n_passes,
            relax=0.0,
            paths=paths_of_norms,
            status=status,
            l1_ratios=ratios,
        )

    def _weight_of(self, train: Rows) -> Array:
        """Return sample weights that are 0 outside of ``train``, with the sum of all rows.

        train : the training rows of a fold.
        """
        weight = self.data.weight * np.bincount(train, minlength=self.data.weight.size)
        scaled: Array = weight * (self.data.weight.sum() / weight.sum())
        return scaled

    def _score(
        self, data: Checked, score: Score | None, W: Array, intercepts: Array, test: Rows
    ) -> float:
        """Return the score of the held-out rows; by default minus their mean loss.

        data : the data of the fold; W (n_features, n_outputs), intercepts : the solution. test :
        the held-out rows. score : the function that scores decisions, or None.
        """
        nonzero_rows = np.flatnonzero(W.any(axis=1))
        rows = part_of(data.fitted_design, rows=test)
        decisions = dense_part(rows, nonzero_rows) @ W[nonzero_rows] + intercepts
        if self.data.offset is not None:
            decisions = decisions + self.data.offset[test]
        if score is not None:
            return score(decisions, test)
        Y = target_matrix(self.data)[test]
        weight = np.repeat(self.data.weight[test], Y.shape[1])
        # ``mean_loss`` averages over all entries of Y. The loss of a row is the sum over its
        # targets, unless the loss already joins them.
        held_out_loss = mean_loss(self.loss, Y.reshape(-1), decisions.reshape(-1), weight)
        return -held_out_loss * (1 if self.loss.coupled > 1 else Y.shape[1])


def target_matrix(data: Checked) -> NDArray[Any]:
    """Return the targets (n_samples, n_targets); of classes their indicators.

    ``data`` is the checked data.
    """
    if data.classes is None:
        return data.y
    indicators: NDArray[Any] = np.eye(data.classes.size)[data.codes]
    return indicators


def search_jointly(
    model: Any,
    data: Checked,
    loss: Loss,
    folds: Sequence[Fold],
    score: Score | None,
    settings: Settings,
) -> None:
    """Choose norm, alpha and l1_ratio of a model of several targets, and fit it to all rows.

    data : the checked data. loss : the loss of all targets together. folds : (training rows,
    held-out rows). score : the function that scores decisions, or None. settings : those of the
    fits.
    """
    candidates = model._candidates()
    if model.until is not None:
        raise ValueError(
            f"until={model.until!r} is for one target, and y has several; leave until out, or fit "
            "one target at a time"
        )
    without_k = [norm for norm in candidates if norm.candidates(*data.design.shape)[0] is not norm]
    if without_k:
        raise ValueError(
            f"norms: {without_k[0]!r} has no k, which is searched for one target only; give k, "
            "such as norms.RowGroups(k=5)"
        )
    # All pairs of a norm and an l1_ratio are scored; the best one is fitted to all rows.
    counted_data, counted_design = data.counted()
    ratios = model._l1_ratios()
    penalties = [(norm, ratio) for ratio in ratios for norm in candidates]
    search = JointSearch(model, counted_data, loss, penalties, [*filled_for(data, folds)])
    scores = search.scored(folds, score, settings.within(0.5))
    chosen, position = scores.choose(model.selection)
    model._record_search(scores, scores.alphas.reshape(len(ratios), len(candidates), -1))
    model.alpha_ = float(scores.alphas[chosen, position])
    model.norm_, model.l1_ratio_ = penalties[chosen]
    model._out_of_fold = None
    if not model.refit:
        data = replace(data, weight=search._weight_of(folds[0][0]))
    model._fit_jointly(data, loss, settings)
    model.status_ = model._searched if model.status_.is_converged else model.status_
    model.n_passes_ += counted_design.passes
