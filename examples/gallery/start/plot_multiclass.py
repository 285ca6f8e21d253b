"""
Ten classes that share their features
=====================================

Handwritten digits, 64 pixels, all ten classes in one multinomial fit under a norm that selects
*rows*: a pixel is used for all classes or for none.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from atomlearn import AtomicClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0)

fig, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
for ax, alpha in zip(axes, [0.06, 0.03, 0.01, 0.003], strict=True):
    model = AtomicClassifier("rows", alpha=alpha, multi_class="multinomial", tol=1e-4)
    model.fit(X_train, y_train)
    used = (model.coef_ != 0).any(axis=0)
    ax.imshow(used.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
    ax.set_title(f"{used.sum()} pixels: {model.score(X_test, y_test):.0%}")
    ax.axis("off")
