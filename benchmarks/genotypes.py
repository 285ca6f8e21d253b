"""A trait of very many people: l1 and k-support by window, from two bits a genotype.

python benchmarks/genotypes.py make FOLDER [--people 340000 --variants 350000]
python benchmarks/genotypes.py fit FOLDER --norm l1|windows [--gap 1e-3]

``make`` writes study.bed (.bim, .fam), study.pheno and study.covar, a quarter of a byte a genotype,
from random bits: variants 2 kb apart in blocks of 50 whose neighbors share seven eighths of their
haplotypes, frequencies of 1/8 to 1/2, two genotypes in a thousand missing; a trait of 60 variants
(heritability 0.3), age and sex. ``fit`` reads it as the command line does, centers and
scales in the passes, leaves the covariates without penalty, and adds a row to
benchmarks/results/genotypes.csv: passes, seconds a pass, peak memory. It is never in memory.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results" / "genotypes.csv"
EVEN = np.uint64(0x5555555555555555)
BLOCK, CAUSAL, APART = 50, 60, 2000
Words = NDArray[np.uint64]


def bits(rng: np.random.Generator, count: int, eighths: int) -> Words:
    """Return words whose bits are one with probability ``eighths`` / 8."""
    words = np.zeros(count, dtype=np.uint64)
    for place in range(3):
        draw = rng.integers(0, 2**64, count, dtype=np.uint64)
        words = words | draw if eighths >> place & 1 else words & draw
    return words


def columns(n_people: int, n_variants: int, rng: np.random.Generator) -> Any:
    """Yield the two-bit codes of each variant: 00 two copies, 10 one, 11 none, 01 missing."""
    count = -(-n_people // 32)
    absent = bits(rng, count + 4096, 1)
    for _ in range(2):
        absent &= bits(rng, count + 4096, 1)
    eighths, words = 1, np.zeros(count, dtype=np.uint64)
    for column in range(n_variants):
        fresh = bits(rng, count, eighths)
        if column % BLOCK == 0:
            eighths = int(rng.integers(1, 5))
            words = bits(rng, count, eighths)
        else:
            renewed = bits(rng, count, 1)
            words = (words & ~renewed) | (fresh & renewed)
        first, second = words & EVEN, (words >> np.uint64(1)) & EVEN
        low, high = EVEN & ~(first | second), EVEN & ~(first & second)
        start = int(rng.integers(4096))
        gone = absent[start : start + count] & EVEN
        yield ((high & ~gone) << np.uint64(1)) | low | gone


def copies(codes: Words, n_people: int) -> NDArray[np.float64]:
    """Return the copies that two-bit codes stand for, the mean where missing."""
    pairs = (codes.view(np.uint8)[:, None] >> np.arange(0, 8, 2, dtype=np.uint8)) & 3
    values = np.array([2.0, np.nan, 1.0, 0.0])[pairs.ravel()[:n_people]]
    return np.nan_to_num(values, nan=float(np.nanmean(values)))


def make(folder: Path, n_people: int, n_variants: int) -> None:
    """Write the genotypes, the trait and the covariates."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    causal = set(rng.choice(n_variants, CAUSAL, replace=False).tolist())
    age, sex = rng.integers(40, 70, n_people), rng.integers(0, 2, n_people)
    signal, n_bytes = np.zeros(n_people), (n_people + 3) // 4
    began = time.perf_counter()
    # What lies behind the last person in a byte is zero in a .bed.
    last = np.uint8((1 << (2 * ((n_people - 1) % 4 + 1))) - 1)
    with (folder / "study.bed").open("wb") as stream, (folder / "study.bim").open("w") as names:
        stream.write(b"\x6c\x1b\x01")
        for column, codes in enumerate(columns(n_people, n_variants, rng)):
            content = codes.view(np.uint8)[:n_bytes].copy()
            content[-1] &= last
            stream.write(content.data)
            names.write(f"{1 + column // 25000}\trs{column}\t0\t{APART * (column + 1)}\tA\tC\n")
            if column in causal:
                x = copies(codes, n_people)
                signal += rng.choice([-1.0, 1.0]) * (x - x.mean()) / x.std()
            if column % 20000 == 0:
                print(f"{column:,} variants, {time.perf_counter() - began:.0f} s", flush=True)
    noise = rng.standard_normal(n_people)
    y = np.sqrt(0.3) * signal / signal.std() + np.sqrt(0.7) * noise + 0.02 * age + 0.3 * sex
    people = [f"{i} {i}" for i in range(n_people)]
    rows = zip(people, y.tolist(), age.tolist(), sex.tolist(), strict=True)
    with (
        (folder / "study.fam").open("w") as fam,
        (folder / "study.pheno").open("w") as pheno,
        (folder / "study.covar").open("w") as covar,
    ):
        pheno.write("FID IID trait\n")
        covar.write("FID IID age sex\n")
        for who, value, years, female in rows:
            fam.write(f"{who} 0 0 0 -9\n")
            pheno.write(f"{who} {value:.6f}\n")
            covar.write(f"{who} {years} {female}\n")


def fit(folder: Path, kind: str, share: float, gap: float, pass_only: bool) -> dict[str, Any]:
    """Fit one norm with covariates, at a share of the largest level of interest."""
    from atomlearn import norms
    from atomlearn.datasets import read
    from atomlearn.designs import Standardized
    from tests.oracles.sums import solve_sum

    began = time.perf_counter()
    table = read(folder / "study.bed", pheno=folder / "study.pheno", covar=folder / "study.covar")
    X, covariates = Standardized(table.X), np.array(table.covariates)
    opened = time.perf_counter() - began
    n, p = X.shape
    y = (table.y - table.y.mean()) / table.y.std()
    own = X.gather(covariates).dense()
    residual = y - own @ np.linalg.lstsq(own, y, rcond=None)[0]
    began = time.perf_counter()
    z = X.scores(residual).full()
    row: dict[str, Any] = {
        "people": n,
        "variants": p - covariates.size,
        "GB": round(n * p / 4e9, 1),
        "norm": kind,
        "seconds_open": round(opened),
        "seconds_a_pass": round(time.perf_counter() - began, 1),
    }
    if pass_only:
        return row | {"peak_GB": peak()}
    z[covariates] = 0.0
    if kind == "l1":
        how: dict[str, Any] = {"norm": norms.L1(), "level": share * np.abs(z).max()}
    else:
        place = table.variants.positions // (8 * APART) + 10**6 * np.array(
            [int(name) for name in table.variants.chromosomes]
        )
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        windows = np.split(np.arange(p - covariates.size), starts[1:])
        windows += [np.array([column]) for column in covariates]
        norm = norms.KSupport(10, groups=windows)
        how = {"norm": norm, "form": "squared", "level": share * float(n)}
    r = solve_sum(X, y, unpenalized=covariates, fit_intercept=True, tol=gap, **how)
    return row | {
        "passes": round(r.passes, 1),
        "seconds": round(r.seconds),
        "selected": int((r.coef[: p - covariates.size] != 0).sum()),
        "relative_gap": f"{r.relative_gap:.1e}",
        "status": r.status.name,
        "peak_GB": peak(),
    }


def peak() -> float:
    """Return the most memory that this process had, in GB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


def main() -> None:
    """Make the data, or fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "fit"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=int, default=340_000)
    parser.add_argument("--variants", type=int, default=350_000)
    parser.add_argument("--norm", choices=("l1", "windows"), default="l1")
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--pass-only", action="store_true")
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder, given.people, given.variants)
        return
    row = fit(given.folder, given.norm, given.share, given.gap, given.pass_only)
    print(row, flush=True)
    known = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    names = list(dict.fromkeys(name for line in [*known, row] for name in line))
    with RESULTS.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*known, row])


if __name__ == "__main__":
    main()
