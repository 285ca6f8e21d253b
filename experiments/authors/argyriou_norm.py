"""[A] section 2: value, dual norm and proximal map of the k-support norm, and its bounds."""

import numpy as np

from atomlearn import norms

w = np.random.default_rng(0).standard_normal(8)
for k in (1, 2.5, 3, 8):
    net = norms.ElasticNetNorm(k)
    print(k, "elastic net", net.value(w), net.polar(w))
    if k == int(k):
        support = norms.KSupport(int(k))
        assert net.value(w) <= support.value(w) < np.sqrt(2) * net.value(w) + 1e-12
        print(k, "k-support", support.value(w), support.polar(w), support.prox_squared(w, 1.0))
