"""The chart of docs/choosing.md, drawn as SVG when the pages are built."""

from __future__ import annotations

from html import escape
from pathlib import Path

#: Question and what to take if the answer is yes; the last is what remains.
QUESTIONS = (
    ("Is the target a matrix, or are the coefficients one?", ("rows, TraceNorm,", "SparseLowRank")),
    ("Is the effect of a feature a curve?", ("features='splines'",)),
    ("Do products of two features count?", ("features='interactions'", "with Hierarchy")),
    ("Do features come in known sets?", ("Groups; where they", "overlap, LatentGroups")),
    ("Are the features that matter much alike?", ("KSupport(k)",)),
)
LAST = ("L1()",)
WIDTH, ROW, LEFT, RIGHT, GAP = 520, 66, 270, 190, 60
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1b1b1b; text-anchor: middle }
  .name { font: 13px ui-monospace, monospace }
  .word { font: 12px system-ui, sans-serif; fill: #555 }
  .ask { fill: #eef3fb; stroke: #3b6ea5 } .take { fill: #eaf6ec; stroke: #3a7d44 }
  .way { stroke: #666; stroke-width: 1.4; fill: none; marker-end: url(#tip) }
"""


def lines_of(text: str, most: int = 32) -> list[str]:
    """Return the words in lines of at most so many letters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def box(x: float, y: float, width: float, lines: list[str] | tuple[str, ...], kind: str) -> str:
    """Return a rounded box with lines of text in its middle."""
    height, name = ROW - 22, "name" if kind == "take" else "text"
    parts = [f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>']
    top = y + height / 2 + 5 - 9 * (len(lines) - 1)
    parts += [
        f'<text class="{name}" x="{x + width / 2}" y="{top + 18 * i}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    return "".join(parts)


def chart() -> str:
    """Return the chart: questions downwards, answers to the right."""
    height = ROW * (len(QUESTIONS) + 1)
    title = "Which norm: " + "; ".join(f"{q} {' '.join(a)}" for q, a in QUESTIONS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}; otherwise {LAST[0]}</title><style>{STYLE}</style>",
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z" fill="#666"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for row, (question, answer) in enumerate(QUESTIONS):
        y, middle = ROW * row + 4, ROW * row + 4 + (ROW - 22) / 2
        parts.append(box(0.5, y, LEFT, lines_of(question), "ask"))
        parts.append(box(LEFT + GAP, y, RIGHT - 0.5, answer, "take"))
        parts.append(f'<path class="way" d="M{LEFT},{middle} H{LEFT + GAP - 3}"/>')
        parts.append(f'<text class="word" x="{LEFT + GAP / 2}" y="{middle - 6}">yes</text>')
        below = y + ROW - 22
        parts.append(f'<path class="way" d="M{LEFT / 2},{below} V{below + 19}"/>')
        parts.append(f'<text class="word" x="{LEFT / 2 + 16}" y="{below + 15}">no</text>')
    parts.append(box(0.5, ROW * len(QUESTIONS) + 4, LEFT, LAST, "take"))
    return "".join(parts) + "</svg>\n"


def write(folder: Path) -> None:
    """Write choosing.svg into the folder, where it is not the same already."""
    path, text = folder / "choosing.svg", chart()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent / "_static")
