"""
In a scikit-learn pipeline
==========================

Estimators of atomlearn are estimators of scikit-learn: parameters of a norm are reached by
``norm__k``, frames go in, names come out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import AtomicClassifier, norms

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
pipeline = make_pipeline(
    StandardScaler().set_output(transform="pandas"), AtomicClassifier(norms.KSupport(k=2))
)
search = GridSearchCV(
    pipeline,
    {"atomicclassifier__norm__k": [1, 3, 10], "atomicclassifier__alpha": [0.1, 0.03, 0.01]},
    cv=5,
).fit(X_train, y_train)
print(search.best_params_, "held-out accuracy:", round(search.score(X_test, y_test), 3))

# %%
# What was selected, under its own names.

model = search.best_estimator_[-1]
names = model.feature_names_in_[model.coef_.ravel() != 0]
sizes = model.coef_.ravel()[model.coef_.ravel() != 0]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.barh(names, sizes, color=["C3" if size < 0 else "C0" for size in sizes])
ax.set_xlabel("coefficient (standardized columns)")
