"""Parts by name: norms, losses, kinds of X and the reader of several targets.

The tables name a part as "module:attribute", as entry points do, and the part is loaded when it is
used. So the answer to a name does not depend on the modules that happen to be imported.
``register_norm``, ``register_loss``, ``register_design`` and ``register_target`` add parts.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from atomlearn._support import libraries
from atomlearn.core.interfaces import Loss, Norm, Task

#: The import path "module:attribute" of a part that is not loaded yet.
Place = str


def loaded(part: Any) -> Any:
    """Return ``part``, or the object that it names if it is a text "module:attribute"."""
    return pkgutil.resolve_name(part) if isinstance(part, str) else part


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of X that ``as_design`` takes.

    Attributes
    ----------
    recognizes : callable
        Returns whether an object is of this kind. It imports nothing.
    make : callable or "module:attribute"
        Returns the design, or an object of another kind. For example, a file may hold a sparse
        array, and NumPy may be able to read a tensor in place.
    names : callable or "module:attribute", optional
        Returns the names of the columns without making the design, or None if X has none.
    opened : bool, default=True
        Whether the data are elsewhere and are opened, rather than converted.
    """

    recognizes: Callable[[Any], bool]
    make: Callable[[Any], Any] | Place
    names: Callable[[Any], list[str] | None] | Place | None = None
    opened: bool = True


#: Norms by name, with the parameters that the class requires.
NORMS: dict[str, tuple[type[Norm] | Place, tuple[str, ...]]] = {
    "l1": ("atomlearn.core.norms.l1:L1", ()),
    "l2": ("atomlearn.core.norms.groups:L2", ()),
    "ksupport": ("atomlearn.core.norms.ksupport:KSupport", ()),
    "elasticnet": ("atomlearn.core.norms.elastic_net:ElasticNetNorm", ()),
    "groups": ("atomlearn.core.norms.groups:Groups", ("groups",)),
    "owl": ("atomlearn.core.norms.ordered:OWL", ("weights",)),
    "linf": ("atomlearn.core.norms.ordered:LInf", ()),
    "exclusive": ("atomlearn.core.norms.exclusive:Exclusive", ("groups",)),
    "constrained": ("atomlearn.core.norms.constrained:Constrained", ("A",)),
    "zerosum": ("atomlearn.core.norms.zero_sum:ZeroSum", ()),
    "latentgroups": ("atomlearn.lifting.latent:LatentGroups", ("groups",)),
    "latentksupport": ("atomlearn.lifting.latent:LatentKSupport", ("k", "groups")),
    "chains": ("atomlearn.lifting.latent:Chains", ("length",)),
    "trees": ("atomlearn.lifting.trees:Trees", ("groups",)),
    "hierarchy": ("atomlearn.lifting.hierarchy:Hierarchy", ()),
    "rows": ("atomlearn.matrices.norms.rows:RowGroups", ()),
    "trace": ("atomlearn.matrices.norms.spectral:TraceNorm", ()),
    "spectralksupport": ("atomlearn.matrices.norms.spectral:SpectralKSupport", ("k",)),
    "psd": ("atomlearn.matrices.norms.spectral:PSD", ()),
    "elliptope": ("atomlearn.matrices.norms.semidefinite:Elliptope", ()),
    "doublynonnegative": ("atomlearn.matrices.norms.semidefinite:DoublyNonnegative", ()),
    "sparserankone": ("atomlearn.matrices.norms.sparse:SparseRankOne", ("k", "q")),
    "sparsepsd": ("atomlearn.matrices.norms.sparse:SparsePSD", ("k",)),
}

#: Losses by name, with their task.
LOSSES: dict[str, tuple[type[Loss] | Place, Task]] = {
    "binomial": ("atomlearn.core.losses.binomial:Binomial", "regression"),
    "huber": ("atomlearn.core.losses.huber:Huber", "regression"),
    "logistic": ("atomlearn.core.losses.logistic:Logistic", "classification"),
    "negative_binomial": ("atomlearn.core.losses.negative_binomial:NegativeBinomial", "regression"),
    "poisson": ("atomlearn.core.losses.poisson:Poisson", "regression"),
    "quantile": ("atomlearn.core.losses.quantile:Quantile", "regression"),
    "squared": ("atomlearn.core.losses.squared:Squared", "regression"),
    "squared_hinge": ("atomlearn.core.losses.squared_hinge:SquaredHinge", "classification"),
    "gamma": ("atomlearn.core.losses.tweedie:Gamma", "regression"),
    "tweedie": ("atomlearn.core.losses.tweedie:Tweedie", "regression"),
    "cox": ("atomlearn.survival.cox:Cox", "survival"),
}

#: Kinds of X in addition to designs, arrays, tables and SciPy's sparse arrays; the first that
#: recognizes X makes the design.
DESIGNS = [
    Kind(
        libraries.is_path,
        "atomlearn.storage.intake.files:open_path",
        "atomlearn.storage.intake.files:names_of_path",
    ),
    Kind(
        libraries.is_dask,
        "atomlearn.storage.spread.distributed:Dask",
        "atomlearn.storage.spread.chunks:names_of_dask",
    ),
    Kind(libraries.is_tensor, "atomlearn.storage.device.on_device:in_place_or_on_device"),
    Kind(
        libraries.is_foreign_sparse,
        "atomlearn.storage.device.on_device:refuse_foreign",
        opened=False,
    ),
    Kind(
        libraries.is_anndata,
        "atomlearn.storage.intake.files:array_of_anndata",
        "atomlearn.storage.intake.files:names_of_anndata",
    ),
    Kind(
        libraries.is_arrow,
        "atomlearn._support:as_table",
        "atomlearn._support:table_names",
    ),
]

#: Functions that turn targets y (n_samples, n_targets) into one problem: (X, y, sample_weight,
#: loss, fit_intercept) -> the same of the one problem. The last one registered is used.
TARGETS: list[Callable[..., tuple[object, object, object, Loss, bool]] | Place] = [
    "atomlearn.matrices.tasks:several_targets"
]


def register_norm(name: str, norm: type[Norm] | Place, required: tuple[str, ...] = ()) -> None:
    """Make ``norm=name`` mean this class, in all functions and estimators.

    Parameters
    ----------
    name : str
        Small letters, without spaces and underscores.
    norm : type or "module:attribute"
        The class.
    required : tuple of str
        Parameters that the class cannot do without.
    """
    if not (name.isalnum() and name.islower()):
        raise ValueError(
            "register_norm: name must be small letters and digits, as look-ups ignore capitals, "
            f"hyphens and underscores; got {name!r}"
        )
    NORMS[name] = (norm, required)


def register_loss(name: str, loss: type[Loss] | Place, task: Task = "regression") -> None:
    """Make ``loss=name`` mean this class, in all functions and estimators.

    Parameters
    ----------
    name : str
        The ``name`` of the class.
    loss : type or "module:attribute"
        The class.
    task : {"regression", "classification", "survival"}
        The ``task`` of the class.
    """
    LOSSES[name] = (loss, task)


def register_design(kind: Kind) -> None:
    """Have ``as_design`` take one more kind of X; kinds registered earlier are tried first.

    Parameters
    ----------
    kind : Kind
        How X is recognized, and the design that it becomes.

    Examples
    --------
    >>> from atomlearn.core.catalogue import Kind, register_design
    >>> from atomlearn.designs import as_design
    >>> class Survey:
    ...     answers = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    >>> register_design(Kind(lambda X, own=Survey: isinstance(X, own), lambda X: X.answers))
    >>> as_design(Survey()).shape
    (3, 2)
    """
    DESIGNS.append(kind)


def register_target(read: Callable[..., tuple[object, object, object, Loss, bool]] | Place) -> None:
    """Have ``solve`` read targets y (n_samples, n_targets) by this function.

    Parameters
    ----------
    read : callable or "module:attribute"
        Takes (X, y, sample_weight, loss, fit_intercept) and returns the same of one problem, with y
        (n_samples * n_targets,). If the loss fits intercepts itself, the returned ``fit_intercept``
        is False.
    """
    TARGETS.append(read)
