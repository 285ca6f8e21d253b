"""Claims of a paper beside what was found here: claims.json, and a README from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: What a claim can turn out to be.
VERDICTS = ("holds", "does not hold", "undecided")


@dataclass(frozen=True)
class Claim:
    """One checkable statement.

    key : where it stands; says : the statement; paper, ours : the numbers side by side; verdict :
    one of VERDICTS; why : what differs and why, or how the run was smaller than the paper's.
    """

    key: str
    says: str
    paper: str
    ours: str
    verdict: str
    why: str = ""


def decided(key: str, says: str, paper: str, ours: str, holds: bool, why: str = "") -> Claim:
    """Return a claim that was tried."""
    return Claim(key, says, paper, ours, VERDICTS[0] if holds else VERDICTS[1], why)


class Record:
    """The claims and figures' numbers of one paper, kept in its directory as they come."""

    def __init__(self, directory: Path, smoke: bool) -> None:
        self.directory = directory
        self.smoke = smoke
        self.name = "smoke_" if smoke else ""
        self.out = Path("build/experiments") / directory.name if smoke else directory
        self.out.mkdir(parents=True, exist_ok=True)
        self.claims: dict[str, Claim] = {}
        self.results: dict[str, Any] = {}

    def add(self, claim: Claim) -> None:
        """Keep a claim, in place of the one of the same key, and write all of them."""
        assert claim.verdict in VERDICTS
        self.claims[claim.key] = claim
        print(f"{claim.key}: {claim.verdict}. paper: {claim.paper}; ours: {claim.ours}", flush=True)
        self.write()

    def keep(self, name: str, value: Any) -> None:
        """Keep the numbers of a table or figure."""
        self.results[name] = value
        self.write()

    def write(self) -> None:
        """Put what this run found into claims.json and results.json, beside what others did."""
        kept = _read(self.out / "claims.json").get("claims", [])
        claims = {one["key"]: one for one in kept}
        claims |= {key: asdict(claim) for key, claim in self.claims.items()}
        counts = {v: sum(one["verdict"] == v for one in claims.values()) for v in VERDICTS}
        listed = [claim for _, claim in sorted(claims.items())]
        text = json.dumps({"counts": counts, "claims": listed}, indent=1, ensure_ascii=False)
        (self.out / "claims.json").write_text(text + "\n", encoding="utf-8")
        results = {**_read(self.out / "results.json"), **self.results}
        text = json.dumps(results, default=float)
        (self.out / "results.json").write_text(text + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def table(claims: list[dict[str, str]]) -> str:
    """Return the claims as a Markdown table."""
    lines = ["| where | the paper says | paper | ours | | why |", "|---|---|---|---|---|---|"]
    for one in claims:
        cells = (one[k] for k in ("key", "says", "paper", "ours", "verdict", "why"))
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
