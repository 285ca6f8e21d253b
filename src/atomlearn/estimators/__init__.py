"""Estimators with scikit-learn's interface: they check data, build problems, solve and report."""
