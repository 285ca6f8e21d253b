#!/usr/bin/env bash
# The kernels built with sanitizers and the checks of the standard library, and what runs them: the
# kernel and master tests, and random certificates. Usage: tests/fuzz/sanitize.sh [address|thread]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kind="${1:-address}"
python="${PYTHON:-.venv/bin/python}"
sanitizers="address,undefined"
[[ "${kind}" == thread ]] && sanitizers=thread
build="build/sanitize-${kind}"
copy="${build}/package"

cmake -S . -B "${build}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSKBUILD_PROJECT_NAME=atomlearn \
  -DSKBUILD_PROJECT_VERSION=0 -DATOMLEARN_SANITIZE="${sanitizers}" \
  -Dnanobind_DIR="$("${python}" -m nanobind --cmake_dir)" \
  -DPython_EXECUTABLE="$(realpath -s "${python}")" > "${build}.log" 2>&1
cmake --build "${build}" -j"$(nproc)" >> "${build}.log" 2>&1

# A copy of the package with these kernels, imported before the installed one.
rm -rf "${copy}"
mkdir -p "${copy}"
cp -r src/atomlearn "${copy}/atomlearn"
cp "${build}"/_native*.so "${copy}/atomlearn/_kernels/"

library="$(g++ -print-file-name="lib$([[ "${kind}" == thread ]] && echo tsan || echo asan).so")"
if [[ "${kind}" == thread ]]; then
  # Of GCC's OpenMP the sanitizer sees no order; ours is of threads and locks that it knows.
  g++ -std=c++20 -shared -fPIC -fsanitize=thread -O1 -g tests/fuzz/openmp.cpp -o "${build}/openmp.so"
  library="${library} $(realpath "${build}/openmp.so")"
fi
run() {
  env LD_PRELOAD="${library} $(g++ -print-file-name=libstdc++.so.6)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66 OMP_NUM_THREADS=2 \
    PYTHONPATH="$(realpath "${copy}"):$(realpath tests/path_first)" PYTHONMALLOC=malloc "${python}" "$@"
}
# Else the sanitizers would have seen nothing of what ran.
run -c "from atomlearn._kernels import _native; assert '${copy}' in _native.__file__, _native.__file__"
run -m pytest -q -n 0 -x -p no:cacheprovider -W ignore ${SANITIZE_TESTS:-tests/kernels tests/core/masters}
run -m benchmarks.certificate.campaign --seconds "${SECONDS_OF_CAMPAIGN:-60}"
echo "sanitizers (${sanitizers}): clean"
