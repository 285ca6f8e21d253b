// What every kernel shares: index type, function multiversioning, thread counts.
#pragma once

#include <omp.h>

#if !defined(_WIN32)
#include <pthread.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>

// Hot loops are compiled for AVX-512, for AVX2 with FMA and for the baseline, and the dynamic
// loader picks one: a wheel built on one machine runs, and runs fast, on another.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && \
    defined(__GLIBC__) && !defined(ATOMLEARN_ONE_CLONE)
#define ATOMLEARN_CLONES \
    __attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define ATOMLEARN_IS_WIDE                                                        \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&  \
     __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && \
     __builtin_cpu_supports("avx512vl"))
#else
#define ATOMLEARN_CLONES
#define ATOMLEARN_IS_WIDE false
#endif

// Small functions of the hot loops, compiled with the loop they stand in.
#define ATOMLEARN_INLINE inline __attribute__((always_inline))

namespace atomlearn {

using Index = std::int64_t;

// A count or position for the standard library, which has no signed ones.
inline std::size_t as_size(Index n) {
    return static_cast<std::size_t>(n);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

// Whether this process is the child of a fork. OpenMP's threads do not survive one, and its pool
// waits for them forever: a child runs every kernel on the thread that called it.
inline bool forked = false;

// Whether the clones for AVX-512 run here, whose registers hold eight float64 and not four.
inline bool has_wide_registers() {
    return ATOMLEARN_IS_WIDE;
}

// Windows has no forks to watch.
inline void watch_forks() {
#if !defined(_WIN32)
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
#endif
}

// The most threads that kernels may use here.
inline int threads_allowed() {
    return forked ? 1 : omp_get_max_threads();
}

// Threads worth waking for this many elementary operations: OMP_NUM_THREADS and threadpoolctl
// set the most, small work stays on the caller. Waking one costs microseconds where a core is
// free, but milliseconds (a slice of the scheduler) where none is: so a quarter of a millisecond
// of work at least for each.
inline int threads_for(Index operations) {
    constexpr Index kWorthOneThread = 1 << 19;
    const Index wanted = operations / kWorthOneThread;
    const Index allowed = omp_in_parallel() ? 1 : threads_allowed();
    return static_cast<int>(std::clamp<Index>(wanted, 1, std::max<Index>(allowed, 1)));
}

// Runs body(part) for every part in [0, parts), one a thread; a single part stays outside OpenMP,
// whose regions cost microseconds.
template <class Body>
void in_parallel(int parts, Body&& body) {
    if (parts == 1) return body(0);
#pragma omp parallel for schedule(static) num_threads(parts)
    for (int part = 0; part < parts; ++part) body(part);
}

struct Range {
    Index begin;
    Index end;
    Index size() const { return end - begin; }
};

// Part `part` of `parts` nearly equal pieces of [0, count), cut at multiples of `grain`.
inline Range piece(Index count, Index part, Index parts, Index grain = 1) {
    const Index units = (count + grain - 1) / grain;
    return {std::min(count, units * part / parts * grain),
            std::min(count, units * (part + 1) / parts * grain)};
}

}  // namespace atomlearn
