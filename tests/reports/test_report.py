"""The page and the tables: all is escaped, nothing comes from outside, extremes are drawn."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from atomlearn._support import write_text
from atomlearn.findings.verdict import Verdict
from atomlearn.reports import ConvergenceDisplay, GroupsDisplay, InteractionsDisplay, MatrixDisplay
from atomlearn.reports.content import Content, FitSummary, HeldOut, Score, SelectedFeature
from atomlearn.reports.data_displays import PredictionDisplay
from atomlearn.reports.drawing import svg_of
from atomlearn.reports.html import report_html
from atomlearn.reports.profile import Profile
from atomlearn.reports.tables import plain, selected_csv, summary_lines
from atomlearn.result import Record

EVIL = '<script>alert("x")</script>&\'"'


def record(step: int, gap: float, columns: int = 3) -> Record:
    return Record(step, float(step + 1), 0.01 * step, 10.0 / (step + 1), gap * 5, gap, columns)


def feature(rank: int, name: str = "f", outputs: int = 1) -> SelectedFeature:
    size = 1.0 / rank
    sign = -1.0 if rank % 2 else 1.0
    return SelectedFeature(rank, name, rank, (sign * size / 7,) * outputs, (sign * size,) * outputs)


def make_content(name: str = "gene", **changes: object) -> Content:
    history = tuple(record(step, 10.0 ** (-3 * step)) for step in range(4))
    fit = FitSummary("sick", "converged: proved", True, 2.0, 1e-9, 4.0, 0.1, history)
    base = Content(
        data="data.csv",
        target="outcome",
        task="classification",
        n_samples=40,
        n_inputs=9,
        n_features=9,
        outputs=("sick",),
        selected=tuple(feature(rank, f"{name} {rank}") for rank in (1, 2, 3)),
        fits=(fit,),
        goal=1e-6,
        held_out=HeldOut(
            30,
            10,
            (Score("accuracy", 0.9, 0.6, "guess", True),),
            verdict(),
            n_selected=3,
            overlap=2,
            confusion=((5, 1), (0, 4)),
        ),
        class_counts=(("healthy", 22), ("sick", 18)),
        details=(("Loss", "logistic"),),
        notes=("a note",),
        command="atomlearn select data.csv",
        versions="atomlearn 0",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def verdict(word: str = "better") -> Verdict:
    how = dict.fromkeys(("score", "interval", "p_value", "verdict"), "somehow")
    return Verdict(word, 0.93, "AUC", (0.8, 0.98), 0.5, 0.0001, 0.7, 10, how, 0)  # type: ignore[arg-type]


class Page(HTMLParser):
    """Collects the tags, attributes and titles of a page, and checks that tags are closed."""

    VOID = ("meta", "br", "line", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_everything_from_outside_is_escaped() -> None:
    fit = make_content().fits[0]
    content = make_content(
        name=EVIL,
        data=EVIL,
        target=EVIL,
        outputs=(EVIL,),
        fits=(replace(fit, label=EVIL, status=EVIL),),
        class_counts=((EVIL, 1), ("b", 2)),
        details=((EVIL, EVIL),),
        notes=(EVIL,),
        command=EVIL,
        versions=EVIL,
    )
    text = report_html(content)
    assert text.count("<script") == 1  # the one of the page itself
    page = Page(text)
    assert page.tags.count("script") == 1
    assert page.words.count(EVIL) >= 8
    assert any(value is not None and EVIL in value for _, value in page.attributes)


def test_every_text_reaches_the_pictures_escaped() -> None:
    names = [EVIL, r"$\frac{", "a\x1b\nb", "_hidden", "long " * 20]
    for display in (
        GroupsDisplay(np.arange(5.0), names),
        InteractionsDisplay.of([(EVIL, name) for name in names[1:]], [1.0, -2.0, 3.0, 0.0]),
        MatrixDisplay(np.eye(5), names),
    ):
        drawn = svg_of(display)
        assert "<script" not in drawn
        root = ElementTree.fromstring(drawn)
        words = {element.text for element in root.iter("text")}
        assert any(word is not None and EVIL[:11] in word for word in words)
        assert {r"$\frac{", "a??b", "_hidden"} <= words
        # Nothing is loaded, and no rule of style is against the policy of the page.
        assert not re.search(r"http|//|@import|<style", re.sub('"data:[^"]*"', "", drawn))


def test_the_page_is_self_contained_and_tells_the_result() -> None:
    text = report_html(make_content())
    page = Page(text)
    assert not re.search(r"(?:https?:)?//|url\([^#]|@import", text)
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert not any(name == "src" or name.startswith("on") for name, _ in page.attributes)
    assert all((value or "")[0] == "#" for name, value in page.attributes if name == "href")
    assert ("name", "viewport") in page.attributes
    assert "prefers-color-scheme: dark" in text
    for words in (
        "3 of 9 features were selected; a model of 3 features predicts outcome",
        "3 features were selected from all rows, 2 of them again when 25% of the rows were left",
        "The same selection was made on the other",
        "targets that have nothing to do with the features do this well once in 10,000 times",
        "better than chance from 0.700 on",
        "held-out AUC 0.930",
        "interval 0.800 to 0.980",
        "90.0%",
        "guess: 60.0%",
        "gene 1",
        "1.0e-09",
        "0.0000001% above",
        "a note",
        "atomlearn select data.csv",
        "fitted exactly",
    ):
        assert words in page.words, words
    assert page.tags.count("svg") == 1


def test_what_is_not_proved_says_so_and_generation_tells_both_bounds() -> None:
    told = {"relative_gap": 0.03, "status": "time limit reached"}
    fit = replace(make_content().fits[0], converged=False, **told)  # type: ignore[arg-type]
    words = Page(report_html(make_content(fits=(fit,)))).words
    for said in ("not to the gap asked for", "3.09% above", "time limit reached"):
        assert said in words
    fit = replace(fit, relative_gap=1.0, gap_on_selected=2e-7)
    words = Page(report_html(make_content(fits=(fit,)))).words
    for said in (
        "2.0e-07",
        "above its optimum over the selected features",
        "is not bounded",
    ):
        assert said in words


def test_no_features_many_features_many_classes() -> None:
    none = Page(report_html(make_content(selected=()))).words
    assert "No feature of 9 was selected for outcome" in none
    many = tuple(feature(rank, f"n{rank}") for rank in range(1, 2001))
    page = Page(report_html(make_content(selected=many)))
    assert "the other 1700 stand in selected.csv" in " ".join(page.words.split())
    outputs = tuple(f"class {j}" for j in range(9))
    fits = tuple(replace(make_content().fits[0], label=label) for label in outputs)
    several = make_content(
        outputs=outputs,
        fits=fits,
        selected=(feature(1, outputs=9), feature(2, outputs=9)),
        class_counts=tuple((label, 3) for label in outputs),
        held_out=None,
    )
    assert "One fit for each class" in Page(report_html(several)).words


def test_regression_page_draws_predictions_and_distribution() -> None:
    values = tuple(np.random.default_rng(0).normal(size=900).tolist())
    score = Score("R²", 0.5, 0.0, "mean", False)
    drawn = [PredictionDisplay(values, values)]
    held_out = HeldOut(30, 900, (score,), verdict(), 3, 2, displays=drawn)
    content = make_content(
        task="regression",
        class_counts=(),
        held_out=held_out,
        columns=[Profile.of("price", values, 0)],
    )
    page = Page(report_html(content))
    assert page.tags.count("svg") == 3
    assert "Columns, the selected ones first" in page.words
    # At most 600 dots of predictions, and some marks of axes.
    assert page.tags.count("use") <= 700


@pytest.mark.parametrize("gap", [0.0, np.inf])
def test_extreme_gaps_stay_inside_the_picture(gap: float) -> None:
    drawn = svg_of(ConvergenceDisplay([[record(0, 1.0), record(1, gap)]], 1e-6))
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawn)[0])
    for mark in ElementTree.fromstring(drawn).iter("use"):
        assert 0 <= float(mark.attrib["x"]) <= width
        assert 0 <= float(mark.attrib["y"]) <= height
    content = make_content(fits=(replace(make_content().fits[0], relative_gap=gap),))
    Page(report_html(content))


def test_constant_and_single_values_are_drawn() -> None:
    for display in (
        PredictionDisplay(np.ones(1), np.ones(1)),
        MatrixDisplay(np.zeros((2, 2))),
        ConvergenceDisplay([[record(0, 1e-9)]], 1e-6),
    ):
        ElementTree.fromstring(svg_of(display))


def test_csv_reads_back_to_the_same_numbers() -> None:
    names = ("plain", "with, comma", 'with "quotes"', "=SUM(A1)", "line\nbreak")
    selected = tuple(feature(rank, name) for rank, name in enumerate(names, start=1))
    rows = list(csv.DictReader(io.StringIO(selected_csv(make_content(selected=selected)))))
    assert [plain(row["feature"]) for row in rows] == list(names)
    assert [float(row["coefficient"]) for row in rows] == [f.coefficients[0] for f in selected]
    several = make_content(outputs=("a", "b"), selected=(feature(1, outputs=2),))
    header = selected_csv(several).splitlines()[0]
    assert "coefficient[a],coefficient[b],standardized_coefficient[a]" in header


def test_terminal_table_has_no_control_characters() -> None:
    selected = (feature(1, "\x1b[31mred\x07" + "x" * 100),)
    lines = summary_lines(make_content(selected=selected))
    assert all(letter.isprintable() for line in lines for letter in line)
    assert max(map(len, lines)) < 100


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_text(path, report_html(make_content()))
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text(path, "new")
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_notebook_shows_the_page() -> None:
    content = make_content()
    shown = content._repr_html_()
    page = re.fullmatch(r'<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>', shown, re.DOTALL)
    assert page is not None
    shown = html.unescape(page[1])
    assert shown.startswith("<!doctype html>")
    assert shown.endswith("</html>")
    assert content.headline in shown
