"""
What stays, and what moves: low rank plus sparse
================================================

Frames of a film as rows: the background, whose light changes slowly, has low rank; what moves is
sparse.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import SparseLowRank

rng = np.random.default_rng(0)
side, frames = 24, 60
rows, cols = np.mgrid[:side, :side] / side
scene = np.stack([np.ones_like(rows), rows, np.sin(6 * cols)]).reshape(3, -1)
light = np.column_stack(
    [np.ones(frames), 0.3 * np.sin(np.arange(frames) / 9), np.full(frames, 0.4)]
)
film = light @ scene + 0.02 * rng.standard_normal((frames, side * side))
for frame in range(frames):
    image = film[frame].reshape(side, side)
    image[8:12, frame % side : frame % side + 4] += 1.5

model = SparseLowRank(tol=1e-3).fit(film)
print("rank:", model.singular_values_.size, model.status_.name)
fig, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
pictures = [("frame 12", film), ("low rank", model.low_rank_), ("sparse", model.sparse_)]
for ax, (title, stack) in zip(axes, pictures, strict=True):
    ax.imshow(stack[12].reshape(side, side), cmap="gray", vmin=-0.5, vmax=2.5)
    ax.set_title(title)
    ax.axis("off")
