"""Models for other tools: scikit-learn's own estimators, ONNX graphs, ten lines of NumPy."""

from atomlearn.estimators.exports import numpy_code, to_onnx, to_sklearn

__all__ = ["numpy_code", "to_onnx", "to_sklearn"]
