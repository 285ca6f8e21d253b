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
    bind_active_set(m);
    bind_alternatives(m);
    bind_blas(m);
    bind_codes(m);
    bind_dense(m);
    bind_elastic_net(m);
    bind_genotype_search(m);
    bind_genotypes(m);
    bind_group_newton(m);
    bind_ksupport(m);
    bind_pattern_newton(m);
    bind_levels(m);
    bind_many(m);
    bind_newton(m);
    bind_pairs(m);
    bind_pivoting(m);
    bind_sampled(m);
    bind_selection(m);
    bind_sparse(m);
    watch_forks();
    m.def("max_threads", &threads_allowed);
    // Of the thread that calls it: OpenMP keeps the number for each.
    m.def("set_threads", [](int threads) { omp_set_num_threads(threads); });
}
