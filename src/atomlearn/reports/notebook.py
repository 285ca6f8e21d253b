"""Progress in notebooks: one line that is written over, and a picture of the gap when it ends."""

from __future__ import annotations

from typing import Any

from atomlearn.core.solvers.progress import Progress


class NotebookProgress:
    """An observer that shows one line of progress in a notebook, at most twice a second.

    In a terminal, where nothing can be written over by IPython, it prints a line instead.

    Parameters
    ----------
    every : float
        Seconds between two lines.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import reports, solve
    >>> seen = reports.NotebookProgress()
    >>> X, y = np.zeros((3, 1)), [3.0, 0.0, 1.0]
    >>> result = solve(X, y, level=0.5, observers=[seen])  # doctest: +ELLIPSIS
    pass 1: objective 5, relative gap ...
    """

    def __init__(self, every: float = 0.5) -> None:
        self.every = every
        self._shown = -float("inf")
        self._handle: Any = None

    def __call__(self, progress: Progress) -> None:
        """Show the line of one step."""
        certificate = progress.state.certificate
        first = progress.seconds < self._shown
        if not first and progress.seconds - self._shown < self.every:
            return
        self._shown = progress.seconds
        line = (
            f"pass {progress.state.iteration + 1}: objective {certificate.objective:.6g}, "
            f"relative gap {certificate.relative_gap:.1e}, {progress.seconds:.1f} s"
        )
        self._show(line)

    def _show(self, line: str) -> None:
        try:
            from IPython import get_ipython
            from IPython.display import display
        except ImportError:
            print(line)
            return
        if get_ipython() is None:
            print(line)
        elif self._handle is None:
            self._handle = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": line}, raw=True)
