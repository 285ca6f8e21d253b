"""Fitted linear models for others: scikit-learn's own, an ONNX graph, ten lines of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.data.coefficients import nonzero_coefficients
from atomlearn.core.interfaces import Array, Columns
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names
from atomlearn.losses import as_loss

#: What becomes of X w + b: the prediction, its exponential, or probabilities of classes.
Answer = Literal["identity", "exp", "sigmoid", "one_against_rest", "softmax", "decision"]


@dataclass(frozen=True, slots=True)
class Formula:
    """answer(Z W' + b), where Z are columns of X, or products of two of them.

    columns, partners : (m,) int64, the factors of each column of Z, the second -1 where there is
    none; weights : (n_outputs, m); intercepts : (n_outputs,); classes : of a classifier, else None;
    n_features : columns of X.
    """

    columns: Columns
    partners: Columns
    weights: Array
    intercepts: Array
    classes: NDArray[Any] | None
    n_features: int
    answer: Answer

    @property
    def products(self) -> bool:
        """Whether any column of Z is a product."""
        return bool((self.partners >= 0).any())


def to_sklearn(estimator: Any) -> Any:
    """Return an estimator of scikit-learn that predicts the same, for tools that know only those.

    Parameters
    ----------
    estimator : fitted linear estimator
        ``AtomicRegressor`` (identity link), ``AtomicClassifier``, ``AtomicSurvival``,
        ``FeatureGenerator``, those with cross-validation; over columns, not over ``features=``.

    Returns
    -------
    LinearRegression, LogisticRegression, OneVsRestClassifier or LinearSVC
        With ``coef_``, ``intercept_``, ``classes_`` in place. It was not fitted by its own ``fit``:
        its parameters (such as C) say nothing of how it came about.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, interop
    >>> X, y = np.eye(4), np.array([3.0, 0.0, 0.0, 1.0])
    >>> model = AtomicRegressor(alpha=0.1).fit(X, y)
    >>> plain = interop.to_sklearn(model)
    >>> type(plain).__name__, bool(np.allclose(plain.predict(X), model.predict(X)))
    ('LinearRegression', True)
    """
    model = _linear_model(estimator)
    if model.products:
        raise ValueError(
            "scikit-learn has no linear model of some products; use to_onnx or numpy_code"
        )
    if model.answer == "exp":
        raise ValueError(
            "scikit-learn has no linear model with a log link whose coefficients can be set; use "
            "to_onnx or numpy_code, or take np.log of what they predict"
        )
    dense = np.zeros((model.weights.shape[0], model.n_features))
    dense[:, model.columns] = model.weights
    if model.classes is None:
        plain = LinearRegression()
        plain.coef_ = dense if estimator.coef_.ndim > 1 else dense[0]
        plain.intercept_ = model.intercepts if estimator.coef_.ndim > 1 else model.intercepts[0]
    elif model.answer == "one_against_rest":
        plain = _one_against_rest(dense, model.intercepts, model.classes)
    else:
        plain = LinearSVC() if model.answer == "decision" else LogisticRegression()
        plain.coef_, plain.intercept_, plain.classes_ = dense, model.intercepts, model.classes
    plain.n_features_in_ = model.n_features
    if input_names(estimator) is not None:
        plain.feature_names_in_ = estimator.feature_names_in_
    return plain


def to_onnx(estimator: Any, path: str | Path | None = None, *, dtype: str = "float32") -> bytes:
    """Return the model as an ONNX graph, for servers and devices without Python.

    Parameters
    ----------
    estimator : fitted linear estimator
        As of ``to_sklearn``; log links and products of columns as well.
    path : str or Path, optional
        Where the graph is written, too.
    dtype : {"float32", "float64"}
        Of the input ``X`` (n_samples, n_features), the arithmetic and the answer.

    Returns
    -------
    bytes
        The graph. Regression: ``prediction`` (n_samples, n_outputs). Classification: ``label``
        (n_samples,) and ``probabilities`` (n_samples, n_classes), or ``decision`` where the loss
        knows none. It reads the columns in use only.

    Raises
    ------
    ImportError
        Without the package ``onnx`` (``pip install "atomlearn[onnx]"``).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, interop
    >>> model = AtomicRegressor(alpha=0.1).fit(np.eye(4), np.array([3.0, 0.0, 0.0, 1.0]))
    >>> graph = interop.to_onnx(model)  # doctest: +SKIP
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            'to_onnx needs the package onnx: pip install "atomlearn[onnx]"'
        ) from error
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    graph = _graph(onnx, _linear_model(estimator), dtype)
    onnx.checker.check_model(graph)
    text: bytes = graph.SerializeToString()
    if path is not None:
        Path(path).write_bytes(text)
    return text


def numpy_code(estimator: Any, name: str = "score") -> str:
    """Return a function of NumPy that predicts the same, as text to paste into other code.

    Parameters
    ----------
    estimator : fitted linear estimator
        As of ``to_onnx``.
    name : str
        The name of the function.

    Returns
    -------
    str
        Source of ``name(X)``: the prediction, probabilities (n_samples, n_classes), or decisions
        where the loss knows no probabilities. Numbers are written in full.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, interop
    >>> X, y = np.eye(4), np.array([3.0, 0.0, 0.0, 1.0])
    >>> model = AtomicRegressor(alpha=0.1).fit(X, y)
    >>> scope = {}
    >>> exec(interop.numpy_code(model), scope)
    >>> bool(np.allclose(scope["score"](X), model.predict(X)))
    True
    """
    if not name.isidentifier():
        raise ValueError(f"name must be a name of Python, got {name!r}")
    model = _linear_model(estimator)
    plain = "z[:, 0]" if model.weights.shape[0] == 1 else "z"
    logistic = "p = 0.5 + 0.5 * np.tanh(z / 2)"
    endings = {
        "identity": [f"return {plain}"],
        "decision": [f"return {plain}"],
        "exp": ["return np.exp(z[:, 0])"],
        "sigmoid": [logistic, "return np.hstack([1 - p, p])"],
        "one_against_rest": [logistic, "return p / p.sum(axis=1, keepdims=True)"],
        "softmax": [
            "e = np.exp(z - z.max(axis=1, keepdims=True))",
            "return e / e.sum(axis=1, keepdims=True)",
        ],
    }
    classes = [] if model.classes is None else [f"    # classes: {model.classes.tolist()}"]
    lines = [
        "import numpy as np",
        "",
        f"def {name}(X):",
        f"    columns = np.array({model.columns.tolist()}, dtype=int)",
        f"    weights = np.array({model.weights.tolist()}).reshape({model.weights.shape})",
        f"    intercepts = np.array({model.intercepts.tolist()})",
        *classes,
        *_formed(model),
        "    z = Z @ weights.T + intercepts",
        *(f"    {line}" for line in endings[model.answer]),
        "",
    ]
    return "\n".join(lines)


def _linear_model(estimator: Any) -> Formula:
    """Return what the estimator predicts with, or say why it is not linear in columns."""
    check_is_fitted(estimator)
    if not isinstance(estimator, AtomicModel):
        owner = type(estimator).__name__
        raise TypeError(f"{owner} is not a linear model of atomlearn with coef_ and a loss")
    used, weights = nonzero_coefficients(estimator.coef_)
    pairs, factors = _inputs(estimator, used)
    n_outputs, classes = len(weights), None
    if is_classifier(estimator):
        classes = estimator.classes_
    return Formula(
        columns=pairs[:, 0],
        partners=pairs[:, 1],
        weights=weights * factors,
        intercepts=np.broadcast_to(np.asarray(estimator.intercept_, np.float64), (n_outputs,)),
        classes=classes,
        n_features=int(estimator.n_features_in_),
        answer=_answer(estimator, n_outputs),
    )


def _inputs(estimator: Any, used: Columns) -> tuple[Columns, Array]:
    """Return the one or two inputs of each column, (m, 2), and the factor of their product."""
    if estimator.features == "linear":
        return np.stack([used, np.full_like(used, -1)], axis=1), np.ones(used.size)
    feature_map = estimator.feature_map_
    if not feature_map.implicit:
        raise ValueError(
            f"{type(estimator).__name__} was fitted with features={estimator.features!r}, which "
            "other packages cannot form from columns; write its model file instead "
            "(reports.write_model)"
        )
    pairs = np.asarray(feature_map.inputs_of(feature_map.term_of(used)), dtype=np.int64)
    # A product of ones is the factor of its column.
    ones = np.ones((1, int(estimator.n_features_in_)))
    return pairs, np.asarray(feature_map.apply(ones).gather(used))[0]


def _formed(model: Formula) -> list[str]:
    """Return the lines of NumPy that form Z."""
    if not model.products:
        return ["    Z = np.asarray(X)[:, columns]"]
    return [
        f"    partners = np.array({model.partners.tolist()})  # -1: none, a column of ones",
        "    X = np.column_stack([X, np.ones(len(X))])",
        "    Z = X[:, columns] * X[:, partners]",
    ]


def _answer(estimator: Any, n_outputs: int) -> Answer:
    loss = as_loss(estimator.loss)
    if loss.task == "classification":
        if not loss.has_probabilities:
            return "decision"
        several: Answer = (
            "softmax" if estimator.multi_class == "multinomial" else "one_against_rest"
        )
        return "sigmoid" if n_outputs == 1 else several
    # A link is known by what it does.
    probe = np.array([-1.0, 0.0, 2.0])
    links: list[tuple[Answer, Array]] = [("identity", probe), ("exp", np.exp(probe))]
    for answer, values in links:
        if np.allclose(loss.mean(probe), values, rtol=1e-12):
            return answer
    raise ValueError(f"the loss {loss.name!r} has a link that is neither the identity nor log")


def _one_against_rest(coef: Array, intercepts: Array, classes: NDArray[Any]) -> Any:
    """Return scikit-learn's one-against-rest of logistic regressions."""
    plain = OneVsRestClassifier(LogisticRegression())
    plain.estimators_ = []
    for row, intercept in zip(coef, intercepts, strict=True):
        one = LogisticRegression()
        one.coef_, one.intercept_ = row[None], np.array([intercept])
        one.classes_, one.n_features_in_ = np.array([0, 1]), coef.shape[1]
        plain.estimators_.append(one)
    plain.classes_ = classes
    plain.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    return plain


def _graph(onnx: Any, model: Formula, dtype: str) -> Any:
    """Return the ONNX model: Gather, MatMul, Add, and what the answer asks for."""
    helper, numbers = onnx.helper, onnx.numpy_helper
    number = onnx.TensorProto.FLOAT if dtype == "float32" else onnx.TensorProto.DOUBLE
    constants = [
        numbers.from_array(model.columns, "columns"),
        numbers.from_array(model.weights.T.astype(dtype), "weights"),
        numbers.from_array(model.intercepts.astype(dtype), "intercepts"),
    ]
    node = helper.make_node
    nodes = [node("Gather", ["X", "columns"], ["first"], axis=1)]
    if model.products:
        constants += [
            numbers.from_array(np.maximum(model.partners, 0), "partners"),
            numbers.from_array(model.partners >= 0, "paired"),
            numbers.from_array(np.ones(1, dtype), "one"),
        ]
        nodes += [
            node("Gather", ["X", "partners"], ["any"], axis=1),
            node("Where", ["paired", "any", "one"], ["second"]),
        ]
    nodes += [
        node("Mul", ["first", "second"], ["Z"])
        if model.products
        else node("Identity", ["first"], ["Z"]),
        node("MatMul", ["Z", "weights"], ["products"]),
        node("Add", ["products", "intercepts"], ["z"]),
    ]
    n_outputs = model.weights.shape[0]
    if model.classes is None:
        nodes.append(node("Exp" if model.answer == "exp" else "Identity", ["z"], ["prediction"]))
        outputs = [helper.make_tensor_value_info("prediction", number, [None, n_outputs])]
    else:
        outputs = _class_nodes(onnx, model, number, nodes, constants)
    given = [helper.make_tensor_value_info("X", number, [None, model.n_features])]
    graph = helper.make_graph(nodes, "atomlearn", given, outputs, constants)
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
        producer_name="atomlearn",
    )


def _class_nodes(
    onnx: Any, model: Formula, number: int, nodes: list[Any], constants: list[Any]
) -> list[Any]:
    """Add probabilities (or decisions) and labels to the graph, and return its outputs."""
    helper, node = onnx.helper, onnx.helper.make_node
    classes = np.asarray(model.classes)
    text = classes.dtype.kind not in "iub"
    labels = classes.astype(str).astype(object) if text else classes.astype(np.int64)
    constants.append(onnx.numpy_helper.from_array(labels, "labels"))
    if model.weights.shape[0] == 1:
        nodes.append(node("Neg", ["z"], ["against"]))
        nodes.append(node("Concat", ["against", "z"], ["sides"], axis=1))
    else:
        nodes.append(node("Identity", ["z"], ["sides"]))
    # The first of equal sides is taken, as argmax does.
    nodes.append(node("ArgMax", ["sides"], ["place"], axis=1, keepdims=0))
    nodes.append(node("Gather", ["labels", "place"], ["label"], axis=0))
    shown, width = "probabilities", classes.size
    if model.answer == "decision":
        nodes.append(node("Identity", ["z"], ["decision"]))
        shown, width = "decision", model.weights.shape[0]
    elif model.answer == "softmax":
        nodes.append(node("Softmax", ["z"], ["probabilities"], axis=1))
    elif model.answer == "sigmoid":
        nodes.append(node("Sigmoid", ["sides"], ["probabilities"]))
    else:
        along = onnx.numpy_helper.from_array(np.array([1], np.int64), "along_classes")
        constants.append(along)
        nodes.append(node("Sigmoid", ["z"], ["separate"]))
        nodes.append(node("ReduceSum", ["separate", "along_classes"], ["sum"], keepdims=1))
        nodes.append(node("Div", ["separate", "sum"], ["probabilities"]))
    kind = onnx.TensorProto.STRING if text else onnx.TensorProto.INT64
    return [
        helper.make_tensor_value_info("label", kind, [None]),
        helper.make_tensor_value_info(shown, number, [None, width]),
    ]
