"""Write a selection into an AnnData object, as scanpy's tools and plots read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import __version__
from atomlearn._support import is_anndata
from atomlearn.core import Array, as_design, column_moments
from atomlearn.reports.model import SavedModel
from atomlearn.reports.model_file import read_model
from atomlearn.reports.view import view_of
from atomlearn.storage.formats.messages import listing, require_name


def to_anndata(
    model: Any,
    adata: Any,
    *,
    key: str = "atomlearn",
    groupby: str | None = None,
    layer: str | None = None,
) -> None:
    """Write the selected genes and their coefficients into ``adata.var`` and ``adata.uns``.

    Parameters
    ----------
    model : folder or file of ``atomlearn select``, SavedModel, or fitted estimator
        A linear model whose columns are variables of ``adata``. A pipeline that ends with an
        estimator is one, too. The columns of a model file are found by their names, or by a column
        of var that has them all, such as ``gene_ids``; those of an estimator by position.
    adata : AnnData
        It is changed in place. Results of the same ``key`` are replaced.
    key : str
        Name of the results.
    groupby : str, optional
        Column of obs with the classes that the model predicts; by default the target in the
        model file. It is needed for an estimator of classes.
    layer : str, optional
        Layer that the model was fitted to; by default that in the model file, else X. "raw" is
        ``adata.raw``.

    Notes
    -----
    - ``adata.var[key + "_selected"]``: whether the gene has a coefficient.
    - ``adata.var[key + "_coefficient"]``: the coefficient per standard deviation with the largest
      absolute value of all classes, 0 for other genes; ``adata.var[key + "_class"]``: its class.
    - ``adata.varm[key]``: the coefficients per standard deviation, a column for each class.
    - ``adata.uns[key]``: for classes in the format of ``scanpy.tl.rank_genes_groups``, so that
      ``scanpy.pl.rank_genes_groups(adata, key=key)`` and similar plots draw it. ``names`` are the
      selected genes of each class, ``scores`` their coefficients per standard deviation, and
      ``logfoldchanges`` are of the means. ``pvals`` are NaN: a selection has none.

    ``adata.var`` gets the columns even if the model was fitted to ``raw``, for the genes that both
    have.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData  # doctest: +SKIP
    >>> from atomlearn import AtomicClassifier, interop
    >>> adata = AnnData(X)  # doctest: +SKIP
    >>> adata.obs["kind"] = y  # doctest: +SKIP
    >>> interop.to_anndata(AtomicClassifier().fit(X, y), adata, groupby="kind")  # doctest: +SKIP
    >>> adata.var_names[adata.var["atomlearn_selected"]]  # doctest: +SKIP
    """
    if not is_anndata(adata):
        raise TypeError(f"to_anndata(model, adata) needs an AnnData, got {type(adata).__name__}")
    selection = _selection(model, adata, groupby, layer)
    var, X = _matrix(adata, selection.layer)
    columns = _columns_of_names(selection.names, var)
    selection = replace(selection, names=[str(var.index[column]) for column in columns])
    # Coefficients per standard deviation can be compared between genes.
    scales = (
        column_moments(as_design(X), columns=columns)[1]
        if selection.scales is None
        else selection.scales
    )
    scores = selection.weights * scales
    if selection.classes is not None and len(scores) == 1:
        # A positive score is in favor of the second class.
        scores = np.concatenate([-scores, scores])
    _write_var(adata, key, selection, scores)
    params = {"method": "atomlearn", "reference": "rest", "use_raw": selection.layer == "raw"}
    if selection.layer not in (None, "X", "raw"):
        params["layer"] = str(selection.layer)
    results: dict[str, Any] = {"params": params, "version": __version__}
    if selection.classes is not None:
        params["groupby"] = str(selection.groupby)
        results |= _ranked(adata, X, columns, selection, scores)
    adata.uns[key] = results


@dataclass(frozen=True, slots=True)
class _Selection:
    """The nonzero coefficients of a model of named columns.

    ``names`` are the columns, ``weights`` the coefficients, (n_outputs, n_columns), and ``scales``
    the standard deviations of the columns they belong to, or None for those of the data.
    """

    names: list[str]
    weights: Array
    scales: Array | None
    classes: tuple[Any, ...] | None
    groupby: str | None
    layer: str | None


def _selection(model: Any, adata: Any, groupby: str | None, layer: str | None) -> _Selection:
    """Return the coefficients of a model file or an estimator, with the classes and the layer.

    model : a folder or file, a SavedModel, or an estimator. adata : the AnnData object. groupby :
    its column of classes; layer : its matrix. If these are None, the model file says them. Raises
    ValueError for products and curves of columns.
    """
    if isinstance(model, str | Path):
        path = Path(model)
        model = read_model(path / "model.json" if path.is_dir() else path)
    if isinstance(model, SavedModel):
        layer = layer or model.settings.get("layer")
        groupby = groupby or model.target
        single_factor = [feature for feature in model.features if len(feature.factors) == 1]
        if len(single_factor) < len(model.features) or any(
            feature.curve for feature in single_factor
        ):
            raise ValueError("the model has products or curves of columns, which var cannot hold")
        genes_used = [model.inputs[feature.factors[0]].name for feature in single_factor]
        # Columns of obs, such as the age of donors, are covariates, and none of var.
        genes = {*map(str, _matrix(adata, layer)[0].index)}
        kept_positions = [
            index
            for index, name in enumerate(genes_used)
            if name in genes or name not in _derived_columns(model)
        ]
        names = [genes_used[index] for index in kept_positions]
        weights = model.coefficients[:, kept_positions]
        selection = _Selection(names, weights, None, model.classes, groupby, layer)
    else:
        var, X = _matrix(adata, layer)
        view = view_of(model, X, list(map(str, var.index)))
        if view.is_mapped:
            raise ValueError("the model has products or curves of columns, which var cannot hold")
        names = [view.names[column] for column in view.columns]
        scales = column_moments(view.design, columns=view.columns)[1]
        selection = _Selection(names, view.weights, scales, view.classes, groupby, layer)
    if selection.classes is not None:
        if groupby is None:
            raise ValueError("give groupby=, the column of obs with the classes of the model")
        require_name(groupby, list(adata.obs.columns), "obs of adata has no column")
    return selection


def _columns_of_names(names_of_model: list[str], var: Any) -> NDArray[np.int64]:
    """Return the columns of these names: of the variables, else of a column of var with them all.

    scanpy.read_10x_h5 names variables by gene symbols and keeps the identifiers in var["gene_ids"].
    """
    for cells in (var.index, *(var[column] for column in var.columns)):
        names = list(map(str, cells))
        column_of = {name: column for column, name in enumerate(names)}
        counts = Counter(names)
        if all(counts[name] == 1 for name in names_of_model):
            return np.array([column_of[name] for name in names_of_model], dtype=np.int64)
    variables = {*map(str, var.index)}
    missing = [name for name in names_of_model if name not in variables]
    raise ValueError(
        f"{listing(missing)} of the model are no variables of adata; give the data that it was "
        "fitted to, or layer="
    )


def _derived_columns(model: SavedModel) -> set[str]:
    """Return the names of those columns of the model that are made of columns of obs."""
    return {name for plan in model.columns for name in plan.made()}


def _matrix(adata: Any, layer: str | None) -> tuple[Any, Any]:
    """Return the table of the variables and the matrix: of X, of a layer or of raw.

    adata : the AnnData object; layer : the name of a layer, "raw", or None for X.
    """
    if layer in (None, "X"):
        return adata.var, adata.X
    if layer == "raw" and layer not in adata.layers and adata.raw is not None:
        return adata.raw.var, adata.raw.X
    require_name(str(layer), list(adata.layers), "the AnnData object has no layer")
    return adata.var, adata.layers[layer]


def _write_var(adata: Any, key: str, selection: _Selection, scores: Array) -> None:
    """Write the columns of ``adata.var``, and ``adata.varm``, for the results called ``key``.

    scores : (n_classes, n_columns) coefficients per standard deviation. ``selection`` are the
    coefficients of the model.
    """
    rows_by_name = {str(name): row for row, name in enumerate(adata.var_names)}
    rows = np.array([rows_by_name.get(name, -1) for name in selection.names], dtype=np.int64)
    has_row = rows >= 0
    table = np.zeros((adata.n_vars, len(scores)))
    table[rows[has_row]] = scores.T[has_row]
    strongest = np.argmax(np.abs(table), axis=1)
    selected = table.any(axis=1)
    adata.var[f"{key}_selected"] = selected
    adata.var[f"{key}_coefficient"] = table[np.arange(adata.n_vars), strongest]
    if selection.classes is not None:
        labels = np.array([str(label) for label in selection.classes], dtype=object)
        adata.var[f"{key}_class"] = np.where(selected, labels[strongest], "")
    adata.varm[key] = table


def _ranked(
    adata: Any, X: Any, columns: NDArray[np.int64], selection: _Selection, scores: Array
) -> dict[str, Any]:
    """Return the record arrays of ``rank_genes_groups``, with a field for each class.

    X : the matrix of the model; columns : its selected columns; scores : (n_classes, n_columns)
    coefficients per standard deviation, by which genes are ranked. ``adata`` is the AnnData object
    and ``selection`` are the coefficients of the model.
    """
    labels = [str(label) for label in selection.classes or ()]
    class_of_cells = np.array([str(cell) for cell in adata.obs[selection.groupby]], dtype=object)
    values = as_design(X).gather(columns).dense()
    # As in scanpy, the values are taken for log(1 + count).
    counts = np.expm1(np.minimum(values, 50.0))
    order = np.argsort(-scores, axis=1, kind="stable")
    names = np.array(selection.names, dtype=object)
    fields: dict[str, list[Any]] = {"names": [], "scores": [], "logfoldchanges": []}
    for row, label in enumerate(labels):
        in_class = class_of_cells == label
        means = [counts[rows].mean(axis=0) for rows in (in_class, ~in_class)]
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.log2((means[0] + 1e-9) / (means[1] + 1e-9))
        fields["names"].append(names[order[row]])
        fields["scores"].append(scores[row, order[row]].astype(np.float32))
        fields["logfoldchanges"].append(change[order[row]].astype(np.float32))
    unknown = [np.full(columns.size, np.nan, dtype=np.float32)] * len(labels)
    fields |= {"pvals": unknown, "pvals_adj": unknown}
    return {
        name: np.rec.fromarrays(parts, names=labels)  # type: ignore[call-overload]
        for name, parts in fields.items()
    }
