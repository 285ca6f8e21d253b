"""
Unit balls
==========

A norm's ball says what it likes: solutions sit where the ball sticks out. In two and three
dimensions the balls can be drawn from the value of the norm alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import norms

angle = np.linspace(0.0, 2 * np.pi, 361)
circle = np.column_stack([np.cos(angle), np.sin(angle)])
flat = {
    "L1": norms.L1(),
    "L2, or k-support with k = 2": norms.L2(),
    "OSCAR: corners where |a| = |b|": norms.OWL.oscar(2, 0.7),
    "weak hierarchy: {a}, {a, b}": norms.LatentGroups([[0], [0, 1]], weights=[1.0, 1.2]),
}
fig, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
for ax, (title, norm) in zip(axes, flat.items(), strict=True):
    edge = circle / np.array([norm.on(2).value(w) for w in circle])[:, None]
    ax.fill(*edge.T, alpha=0.3)
    ax.plot(*edge.T)
    ax.set(aspect="equal", title=title, xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.title.set_fontsize(9)

# %%
# In three dimensions: the k-support norm with k = 2 is the convex hull of three discs, two groups
# make a cylinder-like spindle, overlapping groups two discs.

longitude, latitude = np.meshgrid(np.linspace(0, 2 * np.pi, 61), np.linspace(0, np.pi, 31))
sphere = np.stack(
    [np.sin(latitude) * np.cos(longitude), np.sin(latitude) * np.sin(longitude), np.cos(latitude)]
)
solid = {
    "L1": norms.L1(),
    "KSupport(2)": norms.KSupport(2),
    "Groups {a, b}, {c}": norms.Groups([[0, 1], [2]]),
    "LatentGroups {a, b}, {b, c}": norms.LatentGroups([[0, 1], [1, 2]]),
}
fig = plt.figure(figsize=(11, 3.2), layout="constrained")
for place, (title, norm) in enumerate(solid.items()):
    norm = norm.on(3)
    size = np.apply_along_axis(norm.value, 0, sphere)
    ax = fig.add_subplot(1, 4, place + 1, projection="3d")
    ax.plot_surface(*(sphere / size), rstride=1, cstride=1, color="C0", shade=True)
    ax.set(title=title, xticks=[], yticks=[], zticks=[], box_aspect=(1, 1, 1))
