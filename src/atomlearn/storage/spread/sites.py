"""Data that may not leave its sites: each answers with sums over its rows, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from atomlearn.core.data.convert import as_design, existing_columns
from atomlearn.core.interfaces import Array, Block, Columns, Design, Loss, Scores, whole_number
from atomlearn.core.losses import Offset
from atomlearn.core.losses.registry import BY_NAME
from atomlearn.core.problem.checks import check_offset, check_weight
from atomlearn.core.problem.problem import Problem
from atomlearn.storage.spread.asked import Asked
from atomlearn.storage.spread.rows import Rows, Sums, added, size_of
from atomlearn.storage.spread.summed import problem_of_sums

#: A transport: takes a question to a site, and brings back its answer.
Transport = Callable[[dict[str, Any]], dict[str, Any]]


class Site:
    """The rows of one site: asked a question, it answers with sums over them.

    Run it where the data is, behind any transport. A question is a dictionary of texts, numbers and
    one-dimensional arrays; so is an answer, but for Hessians, which have two dimensions.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features)
    y : array (n_samples,)
    sample_weight, offset : array (n_samples,), optional
        As in ``solve``.
    least_rows : int, default=10
        Rows with a weight below which the site answers nothing. It also tells no products of
        columns unless its rows are so many more than the columns.

    Raises
    ------
    ValueError
        For too few rows, in ``site(question)`` for too many columns, or a question that is none.

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
        self.design = as_design(X)
        self._y = y
        size = self.design.shape[0]
        self._weight = check_weight(sample_weight, size)
        self._offset = None if offset is None else check_offset(offset, size)
        self._least = whole_number("Site", "least_rows", least_rows)
        self._known: tuple[Any, Rows] | None = None
        self.n_rows = int(np.count_nonzero(self._weight))
        if self.n_rows < self._least:
            raise ValueError(
                f"this site has {self.n_rows} rows with a weight and answers for {self._least} at "
                "least, because sums over fewer tell too much of each; pool it with another site"
            )

    def __call__(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question of ``Sites``."""
        kind = str(question.get("ask"))
        if kind == "about":
            return self._about()
        columns = np.asarray(question["columns"], dtype=np.int64)
        block = self.design.gather(existing_columns(columns, self.design.shape[1]))
        rows = self._rows(question)
        if kind == "squares":
            return rows.squares(block)
        at = np.asarray(question["weights"], dtype=np.float64), float(question["shift"])
        if kind == "look":
            bend = bool(question["bend"])
            if bend and columns.size + self._least > self.n_rows:
                raise ValueError(
                    f"asked for products of {columns.size} columns, this site of {self.n_rows} rows"
                    f" answers for {self.n_rows - self._least} at most: those of as many columns as"
                    " rows tell the rows; solve with ColumnGeneration(batch=...) of fewer columns"
                )
            return rows.look(block, *at, bend)
        kept = [float(part) for part in question["kept"]]
        if kind == "conjugate":
            return rows.conjugate(block, *at, kept, float(question["factor"]))
        if kind != "price":
            raise ValueError(f"a site answers about, look, price, conjugate, squares, not {kind!r}")
        v, sums = rows.priced(block, *at, kept)
        return sums | {"scores": self.design.scores(v).full()}

    def _about(self) -> dict[str, Any]:
        """Return what is no sum: the shape, the type and the names of X, and the largest weight."""
        (n_rows, n_columns), names = self.design.shape, self.design.names
        about = {"rows": n_rows, "columns": n_columns, "dtype": self.design.dtype.name}
        return about | {"names": list(names or ()), "weight": float(self._weight.max())}

    def _rows(self, question: dict[str, Any]) -> Rows:
        """Return the rows with the loss that a question names."""
        name, parameters = question["loss"], dict(question["parameters"])
        key = name, sorted(parameters.items())
        if self._known is None or self._known[0] != key:
            if name not in BY_NAME:
                raise ValueError(f"this site knows the losses {sorted(BY_NAME)}, not {name!r}")
            loss = BY_NAME[name](**parameters)
            y = loss.check_target(self._y)
            if y.shape[0] != self.design.shape[0]:
                raise ValueError(f"X has {self.design.shape[0]} rows and y {y.shape[0]} targets")
            whole = loss if self._offset is None else Offset(loss, self._offset)
            self._known = key, Rows(whole, y, self._weight)
        return self._known[1]


class Sites(Design):
    """Rows that stay at their sites: each answers with sums, and the joint problem is solved.

    ``solve(Sites([...]), None, ...)`` and ``paths.path`` have the answer that the pooled rows have,
    with the same proof. Targets, weights and offsets lie at the sites, so y is None.

    Parameters
    ----------
    sites : sequence of callables
        Transports: each takes a question, has the ``Site`` there answer it, and returns the answer.
        A ``Site`` is one, for rows of this process.
    add : callable, optional
        Adds the answers up, list of dict -> dict: the place of secure summation, of which only the
        total can be read. Every answer is a sum over rows.

    Attributes
    ----------
    rounds, sent : int
        Questions so far, each of which all sites answer; bytes of questions and of answers.

    Raises
    ------
    ValueError, TypeError
        For sites of different columns, and what sums over rows do not tell: losses with kinks or
        of several predictions, norms over other than columns.

    Notes
    -----
    The sites see coefficients and intercept on the way. Who solves sees sums over the rows of each
    site (with secure summation: of all): the value of f and of f*, X'v, and the Hessian of the
    columns in use, which for squared loss is their Gram matrix. A site that is asked often about
    many columns tells nearly all: see the page on data that is spread.

    References
    ----------
    [V] section 2, for the dual point, which is formed site by site.
    K. Bonawitz et al. 2017, doi:10.1145/3133956.3133982, for secure summation.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> from atomlearn.designs import Site, Sites
    >>> X = np.random.default_rng(0).standard_normal((2000, 9))
    >>> y = X[:, 2] + 1.0
    >>> here, there = Site(X[:900], y[:900]), Site(X[900:], y[900:])
    >>> found = solve(Sites([here, there]), None, level=200.0, intercept=True)
    >>> found.columns, found.converged
    (array([2]), True)
    """

    has_targets = True

    def __init__(
        self,
        sites: Sequence[Transport],
        *,
        add: Callable[[Sequence[Sums]], Sums] = added,
    ) -> None:
        self.sites = list(sites)
        if not (self.sites and all(callable(site) for site in self.sites)):
            raise TypeError("Sites needs a list of callables, one a site, such as Site(X, y)")
        self.add, self.rounds, self.sent_bytes = add, 0, 0
        self._about = self.asked({"ask": "about"})
        first = self._about[0]
        for number, about in enumerate(self._about):
            same = all(about[part] == first[part] for part in ("columns", "names"))
            if not same:
                raise ValueError(
                    f"site {number} has {about['columns']} columns {about['names'][:3]}, site 0 "
                    f"has {first['columns']} {first['names'][:3]}; all need the same, in one order"
                )
        self.heaviest = max(float(about["weight"]) for about in self._about)

    @property
    def shape(self) -> tuple[int, int]:
        return sum(int(about["rows"]) for about in self._about), int(self._about[0]["columns"])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(np.dtype(str(about["dtype"])) for about in self._about))

    @property
    def names(self) -> list[str] | None:
        return list(self._about[0]["names"]) or None

    @property
    def sent(self) -> tuple[int, int]:
        return self.rounds, self.sent_bytes

    def asked(self, question: dict[str, Any]) -> list[Sums]:
        """Return the answers of all sites, which are asked at the same time."""
        with ThreadPoolExecutor(len(self.sites)) as pool:
            answers = list(pool.map(lambda site: site(question), self.sites))
        self.rounds += 1
        self.sent_bytes += len(answers) * size_of(question) + sum(map(size_of, answers))
        return answers

    def summed(self, problem: Problem) -> Problem:
        if problem.y.size or (problem.weight != 1.0).any():
            _stay()
        if problem.offset is not None:
            raise ValueError("offsets lie at the sites: Site(X, y, offset=...)")
        found = problem_of_sums(problem, lambda: AskedSites(self, problem.loss), self.heaviest)
        if found is None:
            raise TypeError(
                f"sums over rows do not tell all of loss {problem.loss.name!r} with "
                f"{type(problem.regularizer.norm).__name__}: Sites take smooth losses of one "
                "prediction a row, and norms over columns such as l1, groups and k-support"
            )
        return found

    def scores(self, v: Array) -> Scores:
        _stay()

    def gather(self, columns: Columns) -> Block:
        _stay()


def _stay() -> NoReturn:
    raise TypeError(
        "the rows stay at their sites: solve(Sites([...]), None, ...) and paths.path(...) take "
        "them, where y is None, sample_weight and offset are given to each Site, and every column "
        "has a penalty; a result predicts where the rows are: result.predict(X)"
    )


class AskedSites(Asked):
    """Sites asked about one loss."""

    def __init__(self, sites: Sites, loss: Loss) -> None:
        super().__init__()
        self.sites = sites
        if not (is_dataclass(loss) and BY_NAME.get(loss.name) is type(loss)):
            raise TypeError(f"sites know the losses {sorted(BY_NAME)}, not {type(loss).__name__}")
        parameters = {part.name: getattr(loss, part.name) for part in fields(loss) if part.init}
        self._loss: dict[str, Any] = {"loss": loss.name, "parameters": parameters}
        self.shape, self.dtype, self.names = sites.shape, sites.dtype, sites.names

    @property
    def sent(self) -> tuple[int, int]:
        return self.sites.sent

    def ask(self, kind: str, columns: Columns, **given: Any) -> Sums:
        question = {"ask": kind, "columns": columns, **given, **self._loss}
        return self.sites.add(self.sites.asked(question))
