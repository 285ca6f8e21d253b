"""Tuning: the numbers that the speed of the masters hangs on, and what each of them trades."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes, shares and bounds of the masters: they decide how fast, never what is found.

    ``benchmarks/tuning/masters.py`` varies each field by a factor of four to both sides over eleven
    small problems, and writes the ratios of times and steps to
    ``benchmarks/results/tuning_masters.csv``: no other value there is faster beyond the noise of
    about a tenth, and sizes that those problems do not reach are not tested by it. The table does
    not have least_share, least_damping, slow_steps and few_groups yet. Sizes are entries, works are
    operations.

    All masters

    armijo : share of the promised decrease that a line search asks for (the textbook's; no effect).
    inner_steps : bound on the steps of a method inside another: models of a loss, interior-point
        steps, levels, steps of the kernel. Rounding ends them before.
    slice_work : work of a kernel between two looks at the clock, where there is a time limit:
        about 0.05 s. More overruns the limit, less starts the kernel again and again.

    AcceleratedGradient, SemismoothNewton

    rounding_share : share of f below which the difference of two values of f counts as rounding.
    search_slack : slack of its line search, so that rounding does not decide at equality.
    negligible_move : relative change of predictions below which its curvature is rounding.
    gradient_patience : iterations without a tenth off the gap before it gives back what it has.
    newton_regularization : of Newton's equation, relative to 1 / step: larger slows the last steps
        down, smaller loses digits where columns are dependent.
    least_share : where damping all columns alike does not pay, each is damped relative to its own
        curvature, or to this share of the largest where that is more. Smaller loses digits.
    newton_step : Newton's step size in units of 1 / L; below 1 the searched function is convex.
    least_damping : newton_regularization is lowered down to this while steps gain little. With one
        count of 1e7 among small ones it is a thousand times the curvature of all other samples.
    slow_steps : after so many in a row, none of which halves the gap, the damping changes.
    newton_patience : rounds without progress before the best point is given back.
    held_rounds : what a round counts for in which the objective does not move by a digit.
    direct_limit : size of a Newton system from which conjugate gradients replace a factorization:
        a factor of 6000 takes 288 MB and some seconds.

    ActiveSetQP, SequentialQP

    pivots : between two of so many an interrupt is heard.
    first_damping, faded : damping after a step that was cut short, and when it is zero again.
    entering_together : columns under l1 that enter between two looks at all of them.
    columns_together : columns up to which l1 is left to QPs, and whose whole Hessian is made at
        once; beyond, gradient steps on working sets are cheaper,
        but not for losses that couple samples or have no bound on their curvature: there the
        QPs see the columns in use and the best of those that want in, however many there are.
    model_ridge : added to a model of more columns than samples, relative to its mean diagonal.
    few_columns : columns whose whole Hessian costs less than choosing among them.
    kernel_entries, kernel_work : entries of a block, and work of its Hessian, up to which the
        kernel makes all steps before Python looks at the first point: a millisecond or two.
    kernel_columns, model_work_of_columns : columns of a model of the kernel, and multiplications
        that it takes: beyond, gradient steps on working sets go on (a second or two).
    damped_patience : steps in a row without progress, each damped more.

    CompressedSamples

    many_samples, samples_a_square : samples n from which on the Gram matrix is worth its making,
        n >= many_samples and n >= samples_a_square m^2: beyond, working sets are faster.

    compressed_share : share of f(0) to which a few columns are solved over their Gram matrix,
        whatever is asked: what is there next to nothing could cost a pass over the samples.

    CoupledNewton

    coupled_columns, coupled_entries, structured_entries : columns of the Hessian, and entries of
        its block (256 MB as an array; where a structure spares the array time alone counts).
    projected_entries : entries of a block that is made dense to project free columns out of it,
        ``FreeNewton`` (256 MB).
    coupled_share : share of the gap at hand to which a model is solved.
    coupled_halvings : halvings of a step, below which nothing is left but rounding.

    ChosenMaster

    far_out, nearer : residuals of so many times the size beyond which a loss is straight are
        approached by easier losses, each straight beyond this share of the one before.
    easier_share : of the loss of nothing, the gap to which an easier loss is solved.

    ScalingNewton

    features, model_work, kept_work : features whose Gram matrix the kernel works on, and the work
        of making it: once for each model of a loss, or once for all (squared loss).
    column_entries : entries of a dense block whose columns the kernel works on instead.
    few_groups : groups in use up to which such a block is modelled for other losses too: beyond,
        semismooth steps are faster (2000 samples, 750 groups: 3 s for 24 s; 1000 samples, 500
        groups, counts: 22 s for 5 s).
    free_entries, free_entries_of_models : entries that are gathered and scored in less time than a
        pass takes by its overhead, so that a pass may ask for as many; of losses that are not
        quadratic, which score the block once a model.
    least_free : fewer free columns than that are no block worth taking whole.
    few_features : features whose Gram matrix costs little however many samples there are.
    model_share : share of the gap to which a quadratic model of a loss is solved.
    cheap_work : (groups considered)^3, summed over the steps, from which on interior-point steps
        are cheaper than the kernel's.
    interior_shares : shares of the gap that interior-point steps are asked for, one after the
        other while the point with zeros in it has a larger gap.
    interior_patience : steps in a row that do not lower the gap, after which rounding rules.
    to_boundary : share of the way to the boundary that an interior-point step goes.
    at_rest : a group whose squared score falls short of its limit by this share is not in use.
    entering, entering_share : features that may enter in a step, at least, and relative to those
        in use.
    least_curvature : share of the largest curvature to which a smaller one is raised.
    largest_gram : features up to which a Gram matrix is used that is known already.

    Examples
    --------
    >>> TUNING.few_features
    500
    """

    armijo: float = 1e-4
    inner_steps: int = 100
    slice_work: float = 1e8

    rounding_share: float = 1e-8
    search_slack: float = 1e-6
    negligible_move: float = 1e-11
    gradient_patience: int = 2000
    newton_regularization: float = 1e-6
    least_share: float = 1e-9
    newton_step: float = 0.5
    least_damping: float = 1e-14
    slow_steps: int = 3
    newton_patience: int = 20
    held_rounds: int = 4
    direct_limit: int = 6000

    pivots: int = 1000
    first_damping: float = 1e-4
    faded: float = 1e-8
    few_columns: int = 50
    kernel_entries: int = 2**17
    kernel_work: float = 1e7
    columns_together: int = 500
    model_ridge: float = 1e-8
    kernel_columns: int = 5000
    model_work_of_columns: float = 2e10
    entering_together: int = 20
    damped_patience: int = 12

    compressed_share: float = 1e-10
    many_samples: int = 2000
    samples_a_square: int = 4

    coupled_columns: int = 2000
    coupled_entries: int = 2**25
    structured_entries: int = 2**28
    projected_entries: int = 2**25
    coupled_share: float = 1e-3
    coupled_halvings: int = 12
    far_out: float = 3.0
    nearer: float = 0.3
    easier_share: float = 1e-2

    features: int = 2000
    model_work: int = 2**31
    kept_work: int = 2**35
    column_entries: int = 2**22
    few_groups: int = 512
    free_entries: int = 2**21
    free_entries_of_models: int = 2**19
    least_free: int = 100
    few_features: int = 500
    model_share: float = 0.01
    cheap_work: float = 1e8
    interior_shares: tuple[float, ...] = (1e-2, 1e-4, 1e-6)
    interior_patience: int = 6
    to_boundary: float = 0.99
    at_rest: float = 0.1
    entering: int = 50
    entering_share: float = 0.5
    least_curvature: float = 1e-10
    largest_gram: int = 4000


#: What all masters use.
TUNING = Tuning()
