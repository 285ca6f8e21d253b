"""Pictures of matrices: pixels come back out of them as they went in."""

from __future__ import annotations

import base64
import re
import struct
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest
from scipy import sparse

from atomlearn.reports import affinity_plot, components_plot, decomposition_plot


def pixels_of(drawing: str) -> list[np.ndarray]:
    """Decode the embedded pictures with nothing of ours."""
    found = []
    for text in re.findall(r"base64,([^\"]+)\"", drawing):
        data = base64.b64decode(text)
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
        assert depth == 8
        length = struct.unpack(">I", data[33:37])[0]
        assert data[37:41] == b"IDAT"
        assert (
            zlib.crc32(data[37 : 41 + length])
            == struct.unpack(">I", data[41 + length : 45 + length])[0]
        )
        raw = np.frombuffer(zlib.decompress(data[41 : 41 + length]), dtype=np.uint8)
        channels = 3 if kind == 2 else 1
        rows = raw.reshape(height, 1 + width * channels)
        assert (rows[:, 0] == 0).all()
        found.append(rows[:, 1:].reshape(height, width, channels))
    return found


def test_decomposition() -> None:
    low = np.outer(np.arange(4.0), np.ones(6))
    spikes = np.zeros((4, 6))
    spikes[1, 2], spikes[2, 5] = 5.0, -5.0
    drawing = decomposition_plot(low + spikes, low, spikes)
    ET.fromstring(drawing)
    data, background, people = pixels_of(drawing)
    assert data.shape == (4, 6, 1)
    assert (np.diff(background[:, 0, 0].astype(int)) > 0).all()
    assert people[1, 2].tolist() == [255, 0, 0]
    assert people[2, 5].tolist() == [0, 0, 255]
    assert people[0, 0].tolist() == [255, 255, 255]
    frame = decomposition_plot(low + spikes, low, spikes, shape=(2, 3), row=1)
    assert pixels_of(frame)[2].shape == (2, 3, 3)
    with pytest.raises(ValueError, match="one shape"):
        decomposition_plot(low, low[:2], spikes)
    with pytest.raises(ValueError, match="pixels"):
        decomposition_plot(low, low, spikes, shape=(2, 2))


def test_components() -> None:
    components = np.array([[0.8, 0.0, -0.6], [0.0, 1.0, 0.0]])
    drawing = components_plot(components, names=["age", "<dose>", "sex"])
    ET.fromstring(drawing)
    assert drawing.count('class="part"') == 3
    assert "component 1, sex: -0.6" in drawing
    assert "&lt;dose&gt;" in drawing


def test_affinity_sorts_by_label() -> None:
    labels = np.array([0, 1, 0, 1])
    table = (labels[:, None] == labels).astype(float)
    drawing = affinity_plot(sparse.csr_array(table), labels)
    ET.fromstring(drawing)
    [picture] = pixels_of(drawing)
    assert (picture[:2, :2] == 0).all()
    assert (picture[:2, 2:] == 255).all()
    assert drawing.count('class="outline"') == 2
    assert pixels_of(affinity_plot(np.ones((1700, 1700))))[0].shape[0] <= 800
    with pytest.raises(ValueError, match="square"):
        affinity_plot(np.ones((2, 3)))
    with pytest.raises(ValueError, match="labels"):
        affinity_plot(table, [0, 1])
