"""
All products of two columns
===========================

3,000 columns have 4.5 million products of two. They are searched at every pass, exactly, and
never formed; an index says which pair it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from atomlearn import designs, solve

rng = np.random.default_rng(0)
X = sparse.random(1000, 3000, density=0.1, random_state=0, format="csc")
pairs = designs.Polynomial(X, interaction_only=True)
a, b = (X[:, [column]].toarray().ravel() for column in (17, 2321))
c = X[:, [99]].toarray().ravel()
y = 5 * a * b + c + 0.05 * rng.standard_normal(1000)
print("columns searched:", pairs.shape[1])

result = solve(pairs, y, alpha=1.5 / len(y))
print(result)

# %%
# Found: the product, the main effect, and how large they are.

found = [
    (pairs.pair(int(index)), weight)
    for index, weight in zip(result.columns, result.weights, strict=True)
]
found.sort(key=lambda item: -abs(item[1]))
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh([str(pair) for pair, _ in found[:8]], [weight for _, weight in found[:8]])
ax.set(xlabel="coefficient", title="pairs (i, j); j = -1 is column i itself")
ax.invert_yaxis()
