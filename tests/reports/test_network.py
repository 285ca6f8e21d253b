"""Names around the network of interactions lie inside the drawing, and apart from each other."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np

from atomlearn.reports.content import SelectedFeature
from atomlearn.reports.network import network_plot
from atomlearn.reports.style import STYLE

#: Width of a letter and height of a line of the small print, in units of the drawing.
LETTER, LINE = 7.0, 12.0


def test_long_names_are_neither_cut_nor_on_top_of_each_other() -> None:
    names = [f"a very long name of column {k}" for k in range(STYLE.most_nodes)]
    products = [
        SelectedFeature(k + 1, f"{a}:{b}", k, (1.0,), (1.0,), None, None, (a, b))
        for k, (a, b) in enumerate(pairwise(names))
    ]
    drawn = re.findall(
        r'<text class="tick" text-anchor="(\w+)" y="\S+" '
        r'transform="translate\((\S+) (\S+)\) rotate\((\S+)\)">([^<]*)<',
        network_plot(products),
    )
    assert len(drawn) == STYLE.most_nodes
    ends = []
    for anchor, x, y, angle, text in drawn:
        length = LETTER * len(text) * (1 if anchor == "start" else -1)
        ray = np.array([math.cos(math.radians(float(angle))), math.sin(math.radians(float(angle)))])
        near = np.array([float(x), float(y)])
        ends.append((near, near + length * ray))
    assert 0.0 <= np.min(ends) <= np.max(ends) <= STYLE.network
    for before, after in pairwise([*ends, ends[0]]):
        assert min(np.linalg.norm(np.subtract(before, after), axis=1)) >= LINE
