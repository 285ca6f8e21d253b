"""scikit-learn estimators: they validate, call what ``solve`` calls, and report."""
