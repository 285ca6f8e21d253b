"""Tuning: the numbers that the speed of the masters depends on, and the effect of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes, shares and bounds of the masters: they decide the speed, never the result.

    ``benchmarks/sensitivity.py`` varies each of them. Sizes are entries, works are operations.

    inner_steps : bound on the steps of a method inside another. Usually rounding ends them before.
    halvings : bound on the trials of a line search.
    most_steps : bound on the steps of a method that continues while it makes progress.
    few_steps : a small number of Newton steps. If none of them has halved the gap, the damping is
        changed. After four times as many, a kernel returns so that the deadline can be checked.

    rounding_share : share of a value of f or of a gauge below which a difference is rounding.
    negligible_move : relative change of predictions below which f changes linearly up to rounding.
    newton_regularization : ridge in Newton's equation, relative to 1 / step. A larger one slows the
        last steps down, a smaller one loses digits if columns are dependent.
    least_share : if equal damping of all columns is slow, each column is damped in proportion to
        its own curvature, but at least to this share of the largest. A smaller share loses digits.
    newton_patience : rounds without progress after which the best point is returned.

    few_columns : most columns of a block that is solved as a whole, without working sets, and most
        columns for some of the kernels.
    small_entries : most entries of a block that a kernel re-fits in a millisecond or two.
    column_entries : most entries of a dense block on whose columns a kernel works. Gathering such a
        block and computing its scores is faster than the overhead of a pass over the data.
    small_group : most columns of a group whose minimum is computed in the axes of its Hessian.
    columns_a_sample : number of columns per sample beyond which systems over samples are faster
        than systems over groups of columns.
    gram_columns, gram_work : most columns of a Gram matrix, and most operations to compute it.
    gram_entries, structured_entries : most entries of a matrix for Newton steps (256 MB), and of
        the block that it is computed from, if a structure avoids the array of that block.
    model_share : share of the gap to which a quadratic model of a loss is solved.

    Examples
    --------
    >>> TUNING.few_columns
    500
    """

    inner_steps: int = 100
    halvings: int = 20
    most_steps: int = 100_000
    few_steps: int = 3

    rounding_share: float = 1e-8
    negligible_move: float = 1e-11
    newton_regularization: float = 1e-6
    least_share: float = 1e-9
    newton_patience: int = 20

    few_columns: int = 500
    small_entries: int = 2**17
    column_entries: int = 2**21
    small_group: int = 64
    columns_a_sample: int = 4
    gram_columns: int = 2000
    gram_work: int = 2**33
    gram_entries: int = 2**25
    structured_entries: int = 2**28
    model_share: float = 0.001


#: What all masters use.
TUNING = Tuning()
