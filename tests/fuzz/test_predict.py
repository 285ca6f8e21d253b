"""Changed model files: `predict` gives an answer, or says in one line what is wrong."""

import json
import random

import numpy as np
import pytest

from atomlearn.cli import main
from tests.fuzz.mutate import mutated

SEEDS = 60
#: What a field may hold after somebody edited it.
ODD = (None, -1, 2**63, 1e308, float("nan"), "x", "", [], {}, True, [1, "a"], {"name": 3})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a model of numbers, a category and gaps, and the data that it is asked about."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.3f},{'' if i % 9 == 0 else f'{b:.3f}'},{'xyz'[i % 3]},{i * i % 2}"
        for i, (a, b) in enumerate(rng.normal(size=(60, 2)))
    ]
    data = folder / "d.csv"
    data.write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    command = ["select", str(data), "--target", "y", "--norm", "l1", "--alpha", "0.001", "--quiet"]
    assert main([*command, "--missing", "indicator", "--out", str(folder / "out")]) == 0
    return folder / "out" / "model.json", data


def places(content, path=()):
    """Yield the path of every field inside."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def edited(text, rng):
    """Return the text with a field of it changed or taken out."""
    content = json.loads(text)
    *way, last = rng.choice(sorted(places(content), key=str))
    inner = content
    for key in way:
        inner = inner[key]
    if rng.random() < 0.2:
        del inner[last]
    else:
        inner[last] = rng.choice(ODD)
    return json.dumps(content).encode()


@pytest.mark.parametrize("change", [edited, mutated])
def test_a_changed_model_predicts_or_is_refused_in_one_line(change, fitted, tmp_path, capsys):
    model, data = fitted
    whole, answers = model.read_bytes(), 0
    for seed in range(SEEDS):
        (tmp_path / "model.json").write_bytes(change(whole, random.Random(seed)))
        code = main(["predict", str(tmp_path / "model.json"), str(data)])
        said = capsys.readouterr()
        assert code in (0, 2), (seed, said.err)
        if code == 0:
            answers += 1
            assert len(said.out.splitlines()) == 61, seed
        else:
            assert said.err.count("\n") == 1, (seed, said.err)
            assert "internal" not in said.err, (seed, said.err)
    assert 0 < answers < SEEDS
