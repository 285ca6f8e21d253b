"""Write each experiment's README and the docs' page of each paper from its claims.json.

python -m experiments.pages
"""

from __future__ import annotations

import json
from pathlib import Path

from experiments.common.claims import table

ROOT = Path(__file__).resolve().parents[1]
PAPERS = {
    "argyriou": "[A] Argyriou, Foygel, Srebro 2012: sparse prediction with the k-support norm",
    "liu": "[L] Liu, Yuan, Zhang, Liu, Metaxas 2016: k-FCFW",
    "vinyes": "[V] Vinyes, Obozinski 2017: fast column generation",
    "tan": "[T] Tan, Tsang, Wang 2014: the feature generating machine",
}


def claims_of(paper: str) -> str:
    """Return counts and table of a paper's claims as Markdown."""
    found = json.loads((ROOT / "experiments" / paper / "claims.json").read_text(encoding="utf-8"))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found["counts"].items() if count)
    return f"{len(found['claims'])} claims: {counts}.\n\n{table(found['claims'])}\n"


def write(paper: str) -> None:
    """Write README.md of the experiment and the page of the docs."""
    home = ROOT / "experiments" / paper
    figures = sorted(path.name for path in (home / "figures").glob("*.svg"))
    listed = "\n".join(f"- [{name}](figures/{name})" for name in figures)
    measured = (
        "Machine: 2 cores, 24 GB, AMD EPYC, shared with other work while it measured: times are "
        "processor seconds of one thread. Sizes are those of config.json; where they are smaller "
        "than the paper's the last column says so. Missing data are looked for in "
        "`../shared/data` and `ATOMLEARN_DATA`."
    )
    title, claims = PAPERS[paper], claims_of(paper)
    readme = (
        f"# {title}\n\n`make paper-{paper}` runs all of it; `python -m experiments.{paper}.run "
        f"--smoke` small sizes in seconds. {measured}\n\n{claims}\n## Figures\n\n{listed}\n"
    )
    (home / "README.md").write_text(readme, encoding="utf-8")
    short = (home / "page.md").read_text(encoding="utf-8")
    page = f"{short}\n## What holds\n\n{measured} Made by `make paper-{paper}`.\n\n{claims}"
    (ROOT / "docs" / "papers" / f"{paper}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    (ROOT / "docs" / "papers").mkdir(exist_ok=True)
    for paper in PAPERS:
        if (ROOT / "experiments" / paper / "claims.json").exists():
            write(paper)
