"""Sphinx configuration. Nothing here reaches the network, so that -W means our own warnings."""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl

import atomlearn

project = "atomlearn"
author = "The atomlearn developers"
copyright = author
release = atomlearn.__version__
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.programoutput",
]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.zip"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"atomlearn {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_theme_options = {"top_of_page_buttons": []}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/versions.html",
        "sidebar/scroll-end.html",
    ]
}
# Drawn from its questions at each build.
sys.path.insert(0, str(Path(__file__).parent))
importlib.import_module("chart").write(Path(__file__).parent / "_static")

autosummary_generate = True
# A room's public names are those of its __all__, wherever they are defined.
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
smartquotes = False  # two primes are a second derivative
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Every example runs at each change of it, and any warning in it is an error.
mpl.use("agg")
warnings.simplefilter("error", category=FutureWarning)
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "subsection_order": [
        f"../examples/gallery/{room}"
        for room in (
            "six_ways",
            "start",
            "norms",
            "responses",
            "trust",
            "features",
            "matrices",
            "data",
        )
    ]
    + ["../examples/gallery/optimization"],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "min_reported_time": 5,
}
# The command line's reference is what the installed command says.
programoutput_prompt_template = "$ {command}\n{output}"
programoutput_use_ansi = False
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["COLUMNS"] = "90"
copybutton_exclude = ".linenos, .gp, .go"

_CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
_BAR = re.compile(r"(?<!\\)\|")
_TRAILING_UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")
_STAR = re.compile(r"(?<!\\)\*")
_FIELD = re.compile(r"^\s*[\w, *]+ : ")


def plain_mathematics(
    app: object, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Keep formulas such as ``||w||_2`` in docstrings from being read as markup."""
    for number, line in enumerate(lines):
        pieces = _CODE.split(line)
        for place in range(0, len(pieces), 2):
            text = _BAR.sub(r"\\|", pieces[place])
            # The names of a field are numpydoc's; what follows them is text.
            field = _FIELD.match(text) if place == 0 else None
            names, text = text[: field.end() if field else 0], text[field.end() if field else 0 :]
            text = _TRAILING_UNDERSCORE.sub(r"\\_", text)
            pieces[place] = names + _STAR.sub(r"\\*", text)
        lines[number] = "".join(pieces)


def without_routing(
    app: object, what: str, name: str, obj: object, skip: bool, options: Any
) -> bool | None:
    """Leave out the methods that scikit-learn writes itself, with references into its own pages."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


_BACK = re.compile(r"(/(atomlearn[\w.]*?\.(\w+))\.html)#[\w.]*?\.\3(?=[\".])")


def back_links(app: object, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Lead from a page of source to the name that its object is described by."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = _BACK.sub(r"\1#\2", context["body"])


def setup(app: Any) -> None:
    """Run before numpydoc, which listens to the same events at the usual priority of 500."""
    app.connect("autodoc-process-docstring", plain_mathematics, priority=400)
    app.connect("autodoc-skip-member", without_routing, priority=400)
    app.connect("html-page-context", back_links)
