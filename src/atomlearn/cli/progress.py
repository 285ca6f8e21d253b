"""ProgressPrinter: print the progress of fits and keep their time limit."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn._support import Deadline
from atomlearn.core import Checkpoint, Progress, RunObserver


@dataclass(slots=True)
class ProgressPrinter(RunObserver):
    """An observer that prints the progress of consecutive fits.

    ``deadline`` is the time at which fits stop. ``quiet`` prints nothing; ``verbose`` prints one
    line per pass over the data, with its duality gap. ``checkpoint`` is the folder for the state of
    each fit, or None. ``doing`` describes the current step. ``searches`` is the number of remaining
    cross-validation fits, which are counted but not printed; ``alpha`` is the alpha of the last of
    these fits that ended, or None.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> from atomlearn.cli.progress import ProgressPrinter
    >>> progress = ProgressPrinter(quiet=True)
    >>> fitted = solve(np.eye(3), [3.0, 0.0, 0.0], alpha=0.3, observers=progress.observers)
    >>> progress.options["time_limit"] is None
    True
    """

    deadline: Deadline = field(default_factory=Deadline)
    quiet: bool = False
    verbose: bool = False
    checkpoint: Path | None = None
    doing: str = ""
    searches: int = 0
    alpha: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The parameters ``observers`` and ``time_limit`` (seconds left) of an estimator."""
        seconds = self.deadline.left
        return {
            "observers": self.observers,
            "time_limit": None if math.isinf(seconds) else max(seconds, sys.float_info.min),
        }

    @property
    def observers(self) -> tuple[Callable[[Progress], None], ...]:
        """This printer, and a checkpoint observer if there is a checkpoint folder."""
        if self.checkpoint is None:
            return (self,)
        return self, Checkpoint(self.checkpoint, many=True)

    def __enter__(self) -> ProgressPrinter:
        """Return this printer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the progress line."""
        self.line("")

    def end(self, progress: Progress) -> None:
        """Count a finished cross-validation fit, and record its alpha.

        ``progress`` is the last step of a fit; fits other than those of a search are ignored.
        """
        if progress.search:
            # The problem has a sum of losses, and alpha is the strength for their mean.
            problem = progress.problem
            self.alpha = problem.regularizer.amount / float(problem.weight.sum())
            self.searches -= 1
            if self.searches > 0 and self.searches % 50 == 0:
                line = f"  cross-validation: {self.searches} fits to go"
                if not self.line(line):
                    self.say(line)

    def __call__(self, progress: Progress) -> None:
        """Print the progress of one pass, unless it belongs to a cross-validation fit."""
        if progress.search:
            return
        state = progress.state
        n_features = np.count_nonzero(state.weights)
        if not self.verbose:
            self.line(f"{self.doing}: pass {state.iteration + 1}, {n_features:,} columns")
            return
        proved = state.certificate.relative_gap
        selected = state.selected_gap()
        gap = f"{proved:.1e}" if selected is None else f"on these {selected:.1e}"
        self.say(
            f"  pass {state.iteration + 1:>3}  {n_features:>7,} columns  "
            f"objective {state.certificate.objective:<11.6g}  "
            f"proved gap {gap}  {progress.seconds:.2f} s"
        )

    def say(self, line: str) -> None:
        """Print one line of detail to stderr if ``verbose``."""
        if self.verbose and not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def stage(self, doing: str) -> None:
        """Show the current step in the progress line.

        If stderr is not a terminal, print it as a line instead. ``doing`` is its description.
        """
        self.doing = doing
        if self.line(doing) or self.quiet:
            return
        print(doing, file=sys.stderr, flush=True)

    def line(self, text: str) -> bool:
        """Overwrite the progress line of a terminal; return whether there is one to write to.

        ``text`` is the new content of the line.
        """
        if self.quiet or self.verbose or not sys.stderr.isatty():
            return False
        width = shutil.get_terminal_size().columns - 1
        # Go to the start of the line and clear it.
        print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
        return True
