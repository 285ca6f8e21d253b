"""
Which kernel?
=============

Multiple kernel learning chooses among kernels by a group norm over their implicit features: here
Gaussian kernels of several widths on one or both of the inputs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from atomlearn import MultipleKernelClassifier
from atomlearn.designs import kernel_grid

X, y = make_moons(200, noise=0.2, random_state=0)
kernels = kernel_grid(2, widths=(0.1, 0.3, 1.0), degrees=(1, 2))
model = MultipleKernelClassifier(kernels, alpha=0.02).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
heavy = np.argsort(-model.kernel_weights_)[:5]
axes[0].barh([str(kernels[place]) for place in heavy], model.kernel_weights_[heavy])
axes[0].invert_yaxis()
axes[0].set_xlabel("weight of the kernel")
grid = np.stack(np.meshgrid(np.linspace(-1.5, 2.5, 80), np.linspace(-1, 1.5, 60)), axis=-1)
height = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
axes[1].contourf(grid[..., 0], grid[..., 1], height, levels=15, cmap="RdBu_r", alpha=0.7)
axes[1].scatter(*X.T, c=y, cmap="RdBu_r", s=10, edgecolor="k", linewidth=0.3)
