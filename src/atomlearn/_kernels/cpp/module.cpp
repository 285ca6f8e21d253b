// The Python module: what each file defines, and which vector instructions there are.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "bindings.hpp"

constexpr const char* kSimdNames[] = {"baseline", "avx2", "avx512"};

// The best of this processor, but no better than ATOMLEARN_SIMD.
void choose_simd() {
    using atomlearn::simd, atomlearn::Simd;
#ifdef ATOMLEARN_X86
    if (__builtin_cpu_supports("x86-64-v3")) simd = Simd::avx2;
    if (__builtin_cpu_supports("x86-64-v4")) simd = Simd::avx512;
#endif
    const char* given = std::getenv("ATOMLEARN_SIMD");
    const std::string limit = given ? given : "";
    if (limit.empty()) return;
    const auto* found = std::find(std::begin(kSimdNames), std::end(kSimdNames), limit);
    if (found == std::end(kSimdNames))
        throw std::invalid_argument("ATOMLEARN_SIMD must be baseline, avx2 or avx512, got \"" +
                                    limit + "\": set one of these, or unset the variable");
    simd = std::min(simd, static_cast<Simd>(found - kSimdNames));
}

NB_MODULE(_native, m) {
    choose_simd();
    // Blocks that outlive the module at the end of a process are no leak.
    nb::set_leak_warnings(false);
    using namespace atomlearn;
    m.def("simd", [] { return kSimdNames[static_cast<int>(simd)]; });
    for (auto* bind : {bind_active_set, bind_alternatives, bind_blas,        bind_codes,
                       bind_dense,      bind_descent,      bind_elastic_net, bind_genotype_search,
                       bind_genotypes,  bind_group_newton, bind_ksupport,    bind_levels,
                       bind_many,       bind_newton,       bind_pairs,       bind_pattern_newton,
                       bind_pivoting,   bind_sampled,      bind_selection,   bind_sparse})
        bind(m);
    watch_forks();
    m.def("max_threads", &threads_allowed);
    // Of the thread that calls it: OpenMP keeps the number for each.
    m.def("set_threads", [](int threads) { omp_set_num_threads(threads); });
}
