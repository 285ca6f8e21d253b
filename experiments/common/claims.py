"""Claims of a paper beside what was found here: claims.json, and a README from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: What a claim can turn out to be.
VERDICTS = ("holds", "does not hold", "data not at hand", "not run")


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
        known = self.out / "claims.json"
        claims = json.loads(known.read_text())["claims"] if known.exists() else []
        self.claims = {one["key"]: Claim(**one) for one in claims}
        self.results: dict[str, Any] = {}
        if (kept := self.out / "results.json").exists():
            self.results = json.loads(kept.read_text())

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
        """Write claims.json and results.json."""
        counts = {v: sum(c.verdict == v for c in self.claims.values()) for v in VERDICTS}
        claims = [asdict(claim) for _, claim in sorted(self.claims.items())]
        text = json.dumps({"counts": counts, "claims": claims}, indent=1, ensure_ascii=False)
        (self.out / "claims.json").write_text(text + "\n")
        results = json.dumps(self.results, default=float)
        (self.out / "results.json").write_text(results + "\n")


def table(claims: list[dict[str, str]]) -> str:
    """Return the claims as a Markdown table."""
    lines = ["| where | the paper says | paper | ours | | why |", "|---|---|---|---|---|---|"]
    for one in claims:
        cells = (one[k] for k in ("key", "says", "paper", "ours", "verdict", "why"))
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
