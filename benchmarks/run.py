"""Run benchmarks, each in a process of its own.

python benchmarks/run.py [NAMES] [--smoke] [--repeats N] [--out benchmarks/results]

Each prints a table and writes NAME.csv with the figures and NAME.json with the command, the kind
of machine and the versions. Without NAMES all of them run. Full runs mean something on a quiet
machine only. With --smoke nothing is kept unless --out is given.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.harness.options import Options, add_options  # noqa: E402

#: Name -> module and what it measures.
BENCHMARKS = {
    "prox": ("micro.prox", "the k-support prox against those of the papers, one and two threads"),
    "scores": ("micro.scores", "X'v and X w in GB/s against BLAS and SciPy"),
    "top_columns": ("micro.top_columns", "the largest magnitudes against NumPy's partition"),
    "active_set": ("micro.active_set", "the active-set QP while atoms come, against scipy's nnls"),
    "certificate": ("certificate.benchmark", "2,000 random problems confirmed independently"),
    "norm_oracles": ("norm_oracles", "1,000 random cases a norm against enumeration and CVXPY"),
    "correlated": ("correlated", "squared k-support on correlated columns against FISTA"),
    "paths": ("paths", "whole lasso paths against adelie, celer and scikit-learn"),
    "glm_paths": ("glm_paths.benchmark", "whole paths of smooth losses against seven packages"),
    "cv": ("cv", "cross-validated paths against adelie and scikit-learn"),
    "paper_l": ("paper_l", "the million-column logistic problem of [L] against its rivals"),
    "selection": ("selection", "the synthetic selections of [T] against LIBLINEAR"),
    "lasso": ("lasso.benchmark", "lasso and l1-logistic against celer, skglm, adelie, sklearn"),
    "responses": ("responses.benchmark", "Poisson, binomial, multinomial, Cox with l1 against six"),
    "responses_structured": ("responses.structured", "groups, k-support, latent: Poisson and Cox"),
    "groups": ("groups.benchmark", "group lasso and latent groups against celer, skglm, adelie"),
    "implicit": ("implicit", "10^13 products of columns, dense pairs, the way of scikit-learn"),
    "structured": ("structured", "two million interactions, a million overlapping groups"),
    "additive": ("additive", "a pass over additive kernels, 500 kernels against SimpleMKL"),
    "on_disk": ("on_disk", "stores larger than memory, two-bit genotypes, kills at random moments"),
    "biobank": ("biobank", "a whole cross-validated path over genotypes on disk, killed once"),
    "device": ("device", "tensors on a GPU: scores, products and fits against the processor"),
    "rows_elsewhere": ("rows_elsewhere", "paths on Dask rows: bytes, rounds, 1 and 2 workers"),
    "distributed": ("distributed", "Dask on 1 and 2 workers, killed workers, the cost model"),
    "paper_v": ("paper_v", "[V]: Figures 2, 3 and 5 with all rivals"),
    "paper_v_table": ("paper_v_table", "[V]: Table 1, California housing, with all rivals"),
    "matrix_oracles": ("matrices.oracles", "1,000 random cases a matrix norm: SVD, enumeration"),
    "matrix_pursuit": ("matrices.pursuit", "[L] Figures 2 and 3: X - X W on digits, all rivals"),
    "sparse_pca": ("matrices.sparse_pca", "[V] Figure 7: sparse components against two rivals"),
    "completion": ("matrices.completion", "10,000 x 10,000 at 1 %, squared and logistic"),
    "robust_pca": ("matrices.robust_pca", "sparse plus low rank: made data, the escalator video"),
    "clustering": ("matrices.clustering", "spectral clustering of digits by matrix pursuit"),
    "real": ("real.benchmark", "atomlearn select on real files against l1 models"),
    "accuracies": ("accuracies.benchmark", "time to 1e-3, 1e-6 and 1e-9 on 17 problems, 10 peers"),
    "small": ("small", "fits of ordinary shapes against scikit-learn"),
    "startup": ("startup", "import, pip install from a clean clone, make demo from nothing"),
}


def main() -> int:
    """Run what was asked for; return 1 where any of them failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="benchmarks:\n" + "\n".join(f"  {n:14} {w}" for n, (_, w) in BENCHMARKS.items()),
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME")
    add_options(parser)
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    out = given.out or (None if given.smoke else ROOT / "benchmarks" / "results")
    options = Options(given.smoke, given.repeats, out)
    failed = [name for name in given.names or BENCHMARKS if not _run(name, options)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def _run(name: str, options: Options) -> bool:
    """Run one benchmark in a process of its own; return whether it ended well."""
    flags = options.flags + (["--out", str(options.out.resolve())] if options.out else [])
    print(f"=== {name}: {BENCHMARKS[name][1]}", flush=True)
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{BENCHMARKS[name][0]}", *flags],
        cwd=ROOT,
        env=os.environ | {"ATOMLEARN_BENCHMARK": name},
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds, peak = time.monotonic() - began, usage.ru_maxrss / 2**20
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    print(f"=== {name}: {seconds:.0f} s, peak {peak:.2f} GiB, exit code {code}\n", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
