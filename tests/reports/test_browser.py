"""The page in a real browser: no script error, no overflow, sorting, searching, hostile names."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import atomlearn
from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    MatrixPursuit,
    SparseLowRank,
    SubsetRegressor,
    norms,
)  # fmt: skip

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome")
                 if (found := shutil.which(name))), None)  # fmt: skip
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

#: What the browser is asked: put into the page as one more script, whose hash the policy is told.
PROBE = """
const out = [];
const say = (what) => out.push(what);
window.addEventListener("error", (event) => say("error " + event.message));
document.addEventListener("securitypolicyviolation", (event) => say("policy " + event.blockedURI));
window.addEventListener("load", () => {
  const root = document.documentElement;
  if (root.scrollWidth > window.innerWidth + 1) say("overflow " + root.scrollWidth);
  for (const text of document.querySelectorAll("svg.plot text")) {
    const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
    const inside = box.right <= frame.right + 2 && box.left >= frame.left - 2;
    if (!inside) say("clipped " + text.textContent);
  }
  const table = document.getElementById("features");
  if (table) {
    const ranks = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[0].textContent));
    const button = table.tHead.querySelector("button");
    button.focus();
    if (document.activeElement !== button) say("no focus");
    button.click(); button.click();
    const down = ranks();
    if (down.some((rank, at) => at && rank > down[at - 1])) say("not sorted " + down);
    const search = document.getElementById("search");
    search.value = table.tBodies[0].rows[0].cells[1].firstChild.textContent.trim();
    search.dispatchEvent(new Event("input"));
    const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
    if (shown < 1 || (shown === down.length && down.length > 3)) say("search shows " + shown);
  }
  if (document.querySelector("img, iframe") || window.alerted) say("hostile");
  const done = () => {
    const pre = document.createElement("pre");
    pre.id = "probe";
    pre.textContent = "probe:" + JSON.stringify(out);
    document.body.append(pre);
  };
  if (typeof axe === "undefined") return done();
  axe.run(document.querySelector("main"), {resultTypes: ["violations"]}).then((found) => {
    for (const wrong of found.violations)
      if (wrong.impact === "serious" || wrong.impact === "critical")
        say(`axe ${wrong.id}: ${wrong.nodes.map((node) => node.html.slice(0, 99)).slice(0, 3)}`);
  }).catch((error) => say("axe failed " + error)).then(done);
});
"""


def axe() -> str:
    """Return the rules of accessibility, where the package ``axe-core-python`` brings them."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None or found.origin is None:
        return ""
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


#: Widths that each page is shown in, at once: of a desk and of a phone.
WIDTHS = (1280, 390)


def asked(pages: list[Path], dark: bool) -> list[list[str]]:
    """Return what the browser has to complain of on each page, at any width."""
    scripts = [script for script in (axe(), PROBE) if script]
    before = "".join(f"<script>{script}</script>" for script in scripts)
    texts = [page.read_text(encoding="utf-8") for page in pages]
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        own = f"script-src &#39;sha256-{digest}&#39; "
        texts = [text.replace("script-src ", own, 1) for text in texts]
    # Before the page's own script: what that does wrong is heard.
    outer = framed(pages[0], [text.replace("<main>", f"{before}<main>", 1) for text in texts])
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
             "--virtual-time-budget=20000", "--window-size=1400,2100"]  # fmt: skip
    if dark:
        flags.append("--blink-settings=preferredColorScheme=0")
    run = subprocess.run(
        [str(CHROMIUM), *flags, f"file://{outer}"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    found = re.findall(r'id="probe">probe:(.*?)</pre>', run.stdout, re.DOTALL)
    assert len(found) == len(WIDTHS) * len(pages), run.stderr[-2000:]
    plain = [one.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&") for one in found]
    said = [json.loads(one) for one in plain]
    return [
        [*itertools.chain(*said[at : at + len(WIDTHS)])] for at in range(0, len(said), len(WIDTHS))
    ]


def framed(page: Path, texts: list[str]) -> Path:
    """Return a page that shows each text in a frame of each width, and repeats what they say."""
    outer = page.with_name("framed.html")
    inside = [text.replace("&", "&amp;").replace('"', "&quot;") for text in texts]
    frames = "".join(
        f'<iframe style="width:{width}px;height:1000px;border:0" srcdoc="{text}"></iframe>'
        for text in inside
        for width in WIDTHS
    )
    outer.write_text(
        f"{frames}<script>setTimeout(() => document.body.append("
        '...[...document.querySelectorAll("iframe")].map((frame) => '
        'frame.contentDocument.getElementById("probe"))), 15000)</script>',
        encoding="utf-8",
    )
    return outer


def frame(loader: Any) -> tuple[pd.DataFrame, Any]:
    data = loader(as_frame=True)
    return (data.data - data.data.mean()) / data.data.std(), data.target


def genotypes() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    names = [f"{1 + j % 12}:{1000 * j + 5}_A_G" for j in range(200)]
    X = pd.DataFrame(rng.binomial(2, 0.3, (150, 200)).astype(float), columns=names)
    return X, X.iloc[:, 3] - X.iloc[:, 50] + rng.standard_normal(150)


NOISE = np.random.default_rng(1).standard_normal((100, 30))
HOSTILE = [f'<img src=x onerror="window.alerted=1">{"long " * 20}{j}' for j in range(30)]
#: Each shows pictures or a table that the others have not.
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "classes of two": (AtomicClassifier(alpha=0.02), frame(load_breast_cancer), {}),
    "several classes": (AtomicClassifier(alpha=0.05), frame(load_wine), {}),
    "curves": (AtomicRegressor("groups", 2.0, features="splines"), frame(load_diabetes), {}),
    "products": (AtomicRegressor(alpha=2.0, features="interactions"), frame(load_diabetes), {}),
    "groups": (AtomicRegressor(norms.LatentGroups([[0, 1, 2], [2, 3, 4, 5], [6, 7, 8, 9]]), 0.5),
               frame(load_diabetes), {}),
    "generation": (FeatureGenerator(n_features=6, batch=2, standardize=True),
                   frame(load_breast_cancer), {}),
    "best subset": (SubsetRegressor(3, within=0.05, standardize=True), frame(load_diabetes), {}),
    "levels": (AtomicRegressorCV(n_alphas=5, cv=3), frame(load_diabetes), {}),
    "nothing": (AtomicRegressor(alpha=1e5), frame(load_diabetes), {}),
    "genotypes": (AtomicRegressor(alpha=0.2), genotypes(), {}),
    "matrices": (SparseLowRank(), (NOISE, None), {}),
    "affinity": (MatrixPursuit(), (NOISE[:40], None), {}),
    "hostile": (AtomicClassifier(alpha=0.05), (NOISE, (np.arange(100) * 7 % 3 == 0)),
                {"feature_names": HOSTILE, "target": "</h1><script>window.alerted=1</script>"}),
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_all_kinds_of_fits(scheme: str, tmp_path: Path) -> None:
    """Each scheme shows every other kind: one browser for all of them starts once."""
    kinds = list(KINDS)[scheme == "dark" :: 2]
    pages = []
    for kind in kinds:
        model, (X, y), options = KINDS[kind]
        pages.append(tmp_path / f"{len(pages)}.html")
        atomlearn.report(model.fit(X, y), X, y, pages[-1], n_resamples=6, **options)
    said = asked(pages, scheme == "dark")
    assert {kind: one for kind, one in zip(kinds, said, strict=True) if one} == {}
