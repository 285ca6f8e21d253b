"""
Times to an event
=================

Proportional hazards with any norm: many patients are still alive at the end of the study, and
their times are only known to be longer.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicSurvival
from atomlearn.losses import survival_target

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 300))
risk = X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
lifetime, follow_up = rng.exponential(np.exp(-risk)), rng.uniform(0.2, 3.0, 400)
y = survival_target(lifetime <= follow_up, np.minimum(lifetime, follow_up))

model = AtomicSurvival(alpha=0.06).fit(X[:300], y[:300])
print("selected:", model.selected_, "concordance on new patients:", model.score(X[300:], y[300:]))

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
order = np.argsort(model.predict(X[300:]))
curves = model.predict_survival_function(X[300:][order[[5, 50, 95]]])
for curve, label in zip(curves, ["low risk", "middle", "high risk"], strict=True):
    ax.step(curve.x, curve(curve.x), where="post", label=label)
ax.set(xlabel="time", ylabel="share alive", ylim=(0, 1))
ax.legend()
