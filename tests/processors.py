"""The suite as it runs on other processors: python -m tests.processors [NAME ... | --turn].

Without a name all of them, one after the other; --turn takes the one that follows that of the day
before, by the date of the commit: all of them come round in five days. It runs the tests of numbers
only, not those of files, words and pages. Sums are added in another order there, so a test that
asks for equal bits fails on one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

#: What NumPy can switch off here; the second only what needs AVX-512.
NUMPY = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
WIDE = [name for name in NUMPY if "AVX512" in name or name == "X86_V4"]
NARROW = {"ATOMLEARN_SIMD": "avx2", "NPY_DISABLE_CPU_FEATURES": " ".join(WIDE)}

#: What each sets. Every set of instructions and every number of threads comes up at least once;
#: haswell is this processor without AVX-512, in BLAS, NumPy and our kernels.
PROCESSORS = {
    "skylake": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"} | NARROW,
    "zen": {"OPENBLAS_CORETYPE": "Zen", "OMP_NUM_THREADS": "2"} | NARROW,
    "prescott": {"OPENBLAS_CORETYPE": "Prescott", "ATOMLEARN_SIMD": "baseline"},
    "oldest": {
        "OPENBLAS_CORETYPE": "Prescott",
        "ATOMLEARN_SIMD": "baseline",
        "NPY_DISABLE_CPU_FEATURES": " ".join(NUMPY),
        "OMP_NUM_THREADS": "2",
    },
}

#: Folders whose tests compute numbers: what --turn runs.
OF_NUMBERS = [
    "certificates",
    "core",
    "estimators",
    "findings",
    "kernels",
    "lifting",
    "maps",
    "matrices",
    "papers",
    "subsets",
    "survival",
    "validated",
    "verification",
]


def chosen(arguments: list[str]) -> list[str]:
    """Return the names that are asked for, of those that this processor can play."""
    ask = "from atomlearn._kernels._native import simd; print(simd())"
    plain = {name: value for name, value in os.environ.items() if name != "ATOMLEARN_SIMD"}
    best = subprocess.check_output([sys.executable, "-c", ask], env=plain, text=True).strip()
    if best == "baseline":
        raise SystemExit("this processor has no AVX2: it cannot run what is made for others")
    names = [name for name in PROCESSORS if name != "skylake" or best == "avx512"]
    if arguments == ["--turn"]:
        seconds = subprocess.check_output(["git", "log", "-1", "--format=%ct"], text=True)
        return [names[int(seconds) // 86_400 % len(names)]]
    if unknown := set(arguments) - set(names):
        raise SystemExit(f"{sorted(unknown)} cannot be run here; there are {', '.join(names)}")
    return arguments or names


def main(arguments: list[str]) -> int:
    """Run the suite once for each name; return how many of them failed."""
    failed = []
    folders = [f"tests/{name}" for name in OF_NUMBERS] if arguments == ["--turn"] else []
    for name in chosen(arguments):
        settings = {"OMP_NUM_THREADS": "1"} | PROCESSORS[name]
        shown = " ".join(f'{variable}="{value}"' for variable, value in settings.items())
        print(f"{name}: {shown}; again: make test-processors PROCESSORS={name}", flush=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "auto",
            "--dist",
            "worksteal",
            "--maxfail=5",
            *folders,
        ]
        if subprocess.run(command, env=os.environ | settings, check=False).returncode:
            failed.append(name)
    print("failed:", ", ".join(failed) or "none")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
