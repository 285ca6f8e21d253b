"""Drawings of selected groups and of coefficients as sums of parts."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from atomlearn import AtomicRegressor
from atomlearn.core.interfaces.lift import Part
from atomlearn.norms import LatentGroups
from atomlearn.reports import groups_plot, matrix_of_parts, parts_plot

PARTS = [
    Part(0, "a<b & c", np.array([0, 1, 2]), np.array([1.0, -2.0, 0.5])),
    Part(3, None, np.array([2, 5]), np.array([0.25, 1.0])),
]


def shapes(drawing, tag):
    root = ET.fromstring(drawing)
    return [element for element in root.iter() if element.tag.endswith(tag)]


def test_bars_of_groups():
    drawing = groups_plot(PARTS)
    titles = [rect[0].text for rect in shapes(drawing, "rect")]
    assert titles == ["a<b & c: norm 2.291, 3 features", "group 3: norm 1.031, 2 features"]
    assert len(shapes(groups_plot(PARTS, top=1), "rect")) == 1


def test_pieces_of_coefficients():
    drawing = parts_plot(PARTS, names=[f"gene {j}" for j in range(6)])
    titles = [rect[0].text for rect in shapes(drawing, "rect")]
    assert titles == [
        "gene 0: 1 in a<b & c",
        "gene 1: -2 in a<b & c",
        "gene 2: 0.5 in a<b & c",
        "gene 2: 0.25 in group 3",
        "gene 5: 1 in group 3",
    ]
    heights = [float(rect.attrib["height"]) for rect in shapes(drawing, "rect")]
    np.testing.assert_allclose(np.array(heights) / heights[0], [1, 2, 0.5, 0.25, 1], atol=0.01)
    np.testing.assert_array_equal(matrix_of_parts(PARTS, 6).sum(axis=0), [1, -2, 0.75, 0, 0, 1])


def test_from_a_model_to_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 400))
    y = X[:, :3].sum(axis=1) + 0.1 * rng.normal(size=80)
    sets = [list(range(start, start + 20)) for start in range(0, 390, 10)]
    model = AtomicRegressor(LatentGroups(sets), alpha=0.01).fit(X, y)
    for draw in (groups_plot, parts_plot):
        drawing = draw(model.parts_)
        assert drawing.save(tmp_path / "plot.svg").read_text(encoding="utf-8") == drawing
        assert drawing._repr_svg_() == drawing
        ET.fromstring(drawing)


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="no parts to draw"):
        groups_plot(None)
    with pytest.raises(ValueError, match="lower alpha"):
        parts_plot([])
    with pytest.raises(TypeError, match=r"list result\.parts"):
        parts_plot([1, 2])
