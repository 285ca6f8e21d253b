"""Whether every link between the built pages leads somewhere: ``make docs`` asks.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import html
import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag

ELSEWHERE = ("http:", "https:", "mailto:", "data:", "javascript:")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the places that a page can be entered at."""
    return frozenset(re.findall(r'\b(?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))


def leads_somewhere(page: Path, link: str) -> bool:
    """Return whether the file is there, and in it the anchor."""
    url, anchor = urldefrag(link)
    path = unquote(url.split("?")[0])
    target = (page.parent / path).resolve() if path else page
    if not target.is_file():
        return (target / "index.html").is_file()
    return not anchor or target.suffix != ".html" or unquote(anchor) in anchors(target)


def main() -> int:
    """Print what is broken; return 1 where something is."""
    root, count, broken = Path(sys.argv[1]).resolve(), 0, []
    for page in sorted(root.rglob("*.html")):
        links = re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8"))
        inner = {html.unescape(link) for link in links if not link.startswith(ELSEWHERE)}
        count += len(inner)
        broken += [
            (page.relative_to(root), link) for link in inner if not leads_somewhere(page, link)
        ]
    print(f"{count} links between pages, {len(broken)} broken")
    print("".join(f"{page}: {link}\n" for page, link in broken), end="")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
