"""False discoveries and power of knockoffs where half of the columns are categories.

python benchmarks/findings/categories.py [DRAWS] [--apart]

Each draw has 400 rows, 20 numbers and 20 categories of 2 to 6 labels, made of neighbors that are
correlated by 0.3; 12 of the 40 change the target by 0.3 of its noise. --apart keeps the indicator
columns as they are, in place of uncorrelated ones that span the same.
"""

import sys

import numpy as np
import pandas as pd

from atomlearn import KnockoffSelector
from atomlearn.findings import knockoffs

N_ROWS, N_COLUMNS = 400, 40


def table(seed):
    """Return a data frame, its target, and which columns that depends on."""
    rng = np.random.default_rng([seed, 1])
    latent = rng.standard_normal((N_ROWS, N_COLUMNS))
    for j in range(1, N_COLUMNS):
        latent[:, j] = 0.3 * latent[:, j - 1] + np.sqrt(1 - 0.09) * latent[:, j]
    columns, y, true = {}, np.zeros(N_ROWS), np.arange(N_COLUMNS) % 3 == 0
    true[36:] = False
    for j, effect in enumerate(latent.T):
        columns[f"x{j}"] = effect
        if j % 2:
            count = int(rng.integers(2, 7))
            cuts = np.quantile(effect, np.sort(rng.uniform(0.1, 0.9, count - 1)))
            codes = np.searchsorted(cuts, effect)
            names = np.array(list("abcdef"))[rng.permutation(count)]
            columns[f"x{j}"] = pd.Categorical(names[codes])
            effect = rng.standard_normal(count)[codes]
            effect = (effect - effect.mean()) / max(effect.std(), 1e-9)
        y += 0.3 * effect * true[j]
    return pd.DataFrame(columns), y + rng.standard_normal(N_ROWS), true


def main():
    """Print the false discovery rate with its standard error, and power."""
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    n_draws = int(numbers[0]) if numbers else 200
    if "--apart" in sys.argv:
        knockoffs.independent = lambda X, labels: (None, labels)
    false, power = [], []
    for seed in range(n_draws):
        X, y, true = table(seed)
        got = KnockoffSelector(fdr=0.2, random_state=seed).fit(X, y).get_support()
        false.append((got & ~true).sum() / max(got.sum(), 1))
        power.append([(got & true)[part::2].sum() / true[part::2].sum() for part in (0, 1)])
    error = np.std(false) / np.sqrt(n_draws)
    print(f"{n_draws} draws, bound 0.2: {np.mean(false):.3f} +- {error:.3f} false")
    numbers, categories = np.mean(power, axis=0)
    print(f"power {numbers:.3f} of numbers, {categories:.3f} of categories")


if __name__ == "__main__":
    main()
