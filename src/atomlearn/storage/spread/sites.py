"""Federated solves: rows may not leave their sites, and a site returns only sums over its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any, NoReturn

import numpy as np

from atomlearn._support import check_offset, check_weight, whole_number
from atomlearn.core import (
    Array,
    Block,
    Columns,
    Design,
    Offset,
    Problem,
    RowAccess,
    Scores,
    as_design,
    as_loss,
    bare_loss,
    loss_names,
    unwrapped,
)
from atomlearn.storage.spread.rows import HeldRows, Sums, summed
from atomlearn.storage.spread.summed import problem_of_sums, sums_suffice

#: A transport sends a request to a site and returns its answer.
Transport = Callable[[dict[str, Any]], dict[str, Any]]


class Site:
    """The rows of one site of a federated solve; it answers requests with sums over these rows.

    Run it at the site of the data, behind any transport, for example an HTTP server. Requests and
    answers are dictionaries of strings, numbers and arrays of one or two dimensions.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features)
        The rows of this site.
    y : array (n_samples,)
        Their targets.
    sample_weight : array (n_samples,), optional
        Weights of the rows in the loss; by default all are 1.
    offset : array (n_samples,), optional
        Numbers that are added to the predictions.
    least_rows : int, default=10
        Minimum number of rows with a positive weight; a site with fewer raises an error. A request
        for a Gram matrix of m columns is refused unless the site has at least m + ``least_rows``
        rows. A Gram matrix of more columns nearly determines the rows.

    Raises
    ------
    ValueError
        For too few rows; in ``site(question)`` for too many columns or an unknown request.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Site
    >>> site = Site(np.eye(30), np.arange(30.0))
    >>> answer = site({"ask": "about"})
    >>> answer["rows"], answer["columns"]
    (30, 30)
    """

    def __init__(
        self,
        X: object,
        y: object,
        *,
        sample_weight: object = None,
        offset: object = None,
        least_rows: int = 10,
    ) -> None:
        """Store the rows X with targets y, ``sample_weight`` and ``offset``.

        Raise ValueError if fewer than ``least_rows`` rows have a positive weight.
        """
        self.design = as_design(X)
        self._y = y
        n_rows = self.design.shape[0]
        self._weight = check_weight(sample_weight, n_rows)
        self._offset = None if offset is None else check_offset(offset, n_rows)
        self._least = whole_number("Site", "least_rows", least_rows)
        self.n_rows = int(np.count_nonzero(self._weight))
        if self.n_rows < self._least:
            raise ValueError(
                f"this site has {self.n_rows} rows with a weight and answers for {self._least} at "
                "least, because sums over fewer tell too much of each; pool it with another site"
            )

    def __call__(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of ``Sites``: a dictionary of sums over the rows.

        ``question["ask"]`` is "about" (number of rows and columns, names, total weight) or one of
        the kinds of ``HeldRows.answer``: "look" (values and slopes), "bend" (second derivatives)
        and "price" (sums for a duality certificate). Then the request also has the name of the
        loss, its parameters, and a factor by which the weights are multiplied.
        """
        kind = question.get("ask")
        n_rows, n_columns = self.design.shape
        if kind == "about":
            names = list(self.design.names or ())
            weight = float(self._weight.sum())
            return {"rows": n_rows, "columns": n_columns, "names": names, "weight": weight}
        if kind not in ("look", "bend", "price"):
            raise ValueError(f"a site answers about, look, bend and price, not {kind!r}")
        # A Gram matrix of nearly as many columns as rows would reveal the rows.
        n_asked = len(question["columns"])
        if kind == "bend" and n_asked + self._least > self.n_rows:
            raise ValueError(
                f"asked for products of {n_asked} columns, this site of {self.n_rows} rows answers "
                f"for {self.n_rows - self._least} at most: those of as many columns as rows tell "
                "the rows; solve with ColumnGeneration(batch=...) of fewer columns"
            )
        if question["loss"] not in loss_names():
            raise ValueError(f"this site knows the losses {list(loss_names())}")
        named: Any = as_loss(question["loss"])
        loss: Any = replace(named, **question["parameters"])
        y = loss.check_target(self._y)
        if y.size != n_rows:
            raise ValueError(f"X has {n_rows} rows and y {y.size} targets")
        loss = loss if self._offset is None else Offset(loss, self._offset)
        weight = self._weight * question["factor"]
        return HeldRows(loss, y, weight).answer(self.design, question)


class Sites(Design, RowAccess):
    """A design for federated solves: rows stay at their sites, and the sites return sums over them.

    ``solve(Sites([...]), None, ...)`` and ``paths.path`` return the same result as for the pooled
    rows, with the same duality certificate. The sites have the targets, weights and offsets, so
    that y is None.

    Parameters
    ----------
    sites : sequence of callables
        Transports: each sends a request to a ``Site`` and returns its answer. A ``Site`` itself may
        be used as a transport to rows in this process.
    add : callable, optional
        Adds up the answers of the sites, list of dict -> dict. Use a secure-summation protocol here
        to reveal only the total over all sites.

    Raises
    ------
    ValueError, TypeError
        For sites with different columns, and for problems that sums over rows do not determine:
        nonsmooth losses, losses with several predictions per row, norms that are not over columns.

    Notes
    -----
    The sites see coefficients and intercept during the solve. The caller sees sums over the rows of
    each site, or only of all sites with secure summation. They are the loss f and its convex
    conjugate f*, the scores X'v with v = -f', and the Hessian of columns with nonzero coefficients
    (for squared loss their Gram matrix). Many requests about many columns reveal nearly all of the
    data: see the page on distributed data.

    References
    ----------
    [V] section 2, for the dual point, which is computed site by site.
    K. Bonawitz et al. 2017, doi:10.1145/3133956.3133982, for secure summation.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> from atomlearn.designs import Site, Sites
    >>> X = np.random.default_rng(0).standard_normal((2000, 9))
    >>> y = X[:, 2] + 1.0
    >>> here, there = Site(X[:900], y[:900]), Site(X[900:], y[900:])
    >>> found = solve(Sites([here, there]), None, alpha=0.1)
    >>> found.columns, found.converged
    (array([2]), True)
    """

    def __init__(
        self, sites: Sequence[Transport], *, add: Callable[[Sequence[Sums]], Sums] = summed
    ) -> None:
        """Request the shape and the names of columns of all ``sites``, which must agree.

        ``add`` adds up the answers of the sites to one request.
        """
        self.sites = list(sites)
        self.add = add
        if not (self.sites and all(callable(site) for site in self.sites)):
            raise TypeError("Sites needs a list of callables, one a site, such as Site(X, y)")
        self._about = self.ask_all({"ask": "about"})
        first = self._about[0]
        n_rows = sum(int(about["rows"]) for about in self._about)
        self.shape = n_rows, int(first["columns"])
        #: The sum of the weights of all rows.
        self.weight = sum(float(about["weight"]) for about in self._about)
        for number, about in enumerate(self._about):
            if any(about[entry] != first[entry] for entry in ("columns", "names")):
                raise ValueError(
                    f"site {number} has {about['columns']} columns {about['names'][:3]}, site 0 "
                    f"has {first['columns']} {first['names'][:3]}; all need the same, in one order"
                )

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, or None."""
        return list(self._about[0]["names"]) or None

    def ask_all(self, question: dict[str, Any]) -> list[Sums]:
        """Send the request ``question`` to all sites in parallel; return their answers in order."""
        with ThreadPoolExecutor(len(self.sites)) as pool:
            return list(pool.map(lambda site: site(question), self.sites))

    @property
    def row_access(self) -> RowAccess:  # type: ignore[override]
        """This design itself, through which solvers request sums over rows."""
        return self

    def summed(self, problem: Problem) -> Problem:
        """Return an equivalent problem over sums of all sites; raise if there is none.

        Its loss is a function of the coefficients, and requests sums from the sites. A problem over
        another design is returned unchanged.
        """
        if unwrapped(problem.design) is not self:
            return problem
        # The sites have the targets, weights and offsets: the problem must not have any.
        if problem.y.size or np.ptp(problem.weight):
            _refuse_rows()
        loss = problem.loss
        if not sums_suffice(problem):
            raise TypeError(
                f"sums over rows do not suffice for the loss {loss.name!r} with "
                f"{type(problem.regularizer.norm).__name__}: Sites take smooth losses of one "
                "prediction a row, and norms over columns such as l1, groups and k-support"
            )
        if bare_loss(loss) is not loss:
            raise ValueError("offsets belong to the sites: Site(X, y, offset=...)")
        if loss.name not in loss_names() or type(as_loss(loss.name)) is not type(loss):
            raise TypeError(
                f"sites know the losses {list(loss_names())}, not {type(loss).__name__}"
            )
        # The problem may scale all weights by one factor; the sites apply it to their weights.
        loss_parts = {
            "loss": loss.name,
            "parameters": asdict(loss),  # type: ignore[call-overload]
            "factor": float(problem.weight.sum()) / self.weight,
        }

        def total_answer(question: Sums) -> Sums:
            """Send the request ``question`` to all sites, and return the sum of their answers."""
            answer: Sums = self.add(self.ask_all(question | loss_parts))
            return answer

        return problem_of_sums(problem, len(self.sites), total_answer)

    def scores(self, v: Array) -> Scores:
        """Raise TypeError: scores X'v of a vector v over rows would need the rows here."""
        _refuse_rows()

    def gather(self, columns: Columns) -> Block:
        """Raise TypeError: columns do not leave the sites."""
        _refuse_rows()


def _refuse_rows() -> NoReturn:
    """Raise TypeError for operations that would need the rows in this process."""
    raise TypeError(
        "the rows stay at their sites: solve(Sites([...]), None, ...) and paths.path(...) take "
        "them, where y is None, sample_weight and offset are given to each Site, and every column "
        "has a penalty; a result predicts where the rows are: result.predict(X)"
    )
