"""Watch: what a run says while it goes on, and its time limit."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.core import Checkpoint, Deadline, Progress, RunObserver


@dataclass(slots=True)
class Watch(RunObserver):
    """What is seen of the fits that go on one after the other; an observer of each of them.

    deadline : when the fits are to end; quiet : print nothing; verbose : print a line a pass, with
    its proved gap, and not one line for all; checkpoint : folder for the state of each fit, or
    None; doing : what goes on; searches : number of fits of a cross-validation that are still to
    come and are only counted, a line of progress for 50 of them; alpha : of the last of them that
    ended, or None.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> from atomlearn.cli.watching import Watch
    >>> watch = Watch(quiet=True)
    >>> fitted = solve(np.eye(3), [3.0, 0.0, 0.0], alpha=0.3, observers=watch.observers)
    >>> watch.options["time_limit"] is None
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
        """What an estimator takes to be watched, and ended in time."""
        left = self.deadline.left
        return {
            "observers": self.observers,
            "time_limit": None if math.isinf(left) else max(left, sys.float_info.min),
        }

    @property
    def observers(self) -> tuple[Callable[[Progress], None], ...]:
        """This watch, and a checkpoint where a folder was given."""
        if self.checkpoint is None:
            return (self,)
        return self, Checkpoint(self.checkpoint, many=True)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.line("")

    def end(self, progress: Progress) -> None:
        """Count the fits of a search."""
        if progress.search:
            problem = progress.problem
            self.alpha = problem.regularizer.amount / float(problem.weight.sum())
            self.searches -= 1
            if self.searches > 0 and self.searches % 50 == 0:
                told = f"  cross-validation: {self.searches} fits to go"
                if not self.line(told):
                    self.say(told)

    def __call__(self, progress: Progress) -> None:
        """Print the line of one step, unless it is one of a search."""
        if progress.search:
            return
        state = progress.state
        n_features = np.count_nonzero(state.weights)
        if not self.verbose:
            self.line(f"{self.doing}: pass {state.iteration + 1}, {n_features:,} columns")
            return
        proved = state.certificate.relative_gap
        selected = state.selected_gap()
        told = f"{proved:.1e}" if selected is None else f"on these {selected:.1e}"
        self.say(
            f"  pass {state.iteration + 1:>3}  {n_features:>7,} columns  "
            f"objective {state.certificate.objective:<11.6g}  "
            f"proved gap {told}  {progress.seconds:.2f} s"
        )

    def say(self, line: str) -> None:
        """Print one line of detail, where it was asked for."""
        if self.verbose and not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def stage(self, doing: str) -> None:
        """Say what goes on now: in the line of progress, or in a line of a file."""
        self.doing = doing
        if self.line(doing) or self.quiet:
            return
        print(doing, file=sys.stderr, flush=True)

    def line(self, text: str) -> bool:
        """Show this in place of the last line of progress, on a terminal; return whether it is."""
        if self.quiet or self.verbose or not sys.stderr.isatty():
            return False
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
        return True
