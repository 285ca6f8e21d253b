"""Tuning: the numbers that the speed of the masters depends on, and the trade of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes, shares and bounds of the masters: they decide the speed, never the result.

    ``benchmarks/sensitivity.py`` varies each of them. Sizes are entries, works are operations.

    inner_steps : bound on the steps of a method inside another. Rounding ends them before.
    halvings : bound on the trials of a line search.
    most_steps : bound on the steps of a method that continues while it makes progress.
    few_steps : Newton steps between two looks: of a kernel at the clock, where time is limited, and
        at the damping, which changes if none of them halves the gap.

    rounding_share : share of a value of f or of a gauge below which a difference is rounding.
    negligible_move : relative change of predictions below which its curvature is rounding.
    newton_regularization : of Newton's equation, relative to 1 / step: larger slows the last steps
        down, smaller loses digits where columns are dependent.
    least_share : where damping all columns alike does not pay, each is damped relative to its own
        curvature, or to this share of the largest if that is more. Smaller loses digits.
    newton_patience : rounds without progress before the best point is given back.

    few_columns : columns that are worked on whole, or groups in use that a kernel has.
    small_entries : entries of a block whose re-fit takes a kernel a millisecond or two.
    column_entries : entries of a dense block whose columns a kernel works on, and which are
        gathered and scored in less time than a pass takes by its overhead.
    small_group : columns of the largest group whose minimum is found in the axes of its Hessian.
    columns_a_sample : columns of groups beyond which systems of samples take less work.
    gram_columns, gram_work : columns of a Gram matrix, and work of making it.
    gram_entries, structured_entries : entries of a matrix that is made for Newton steps (256 MB),
        and of a block of which it is made where a structure spares the array.
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
