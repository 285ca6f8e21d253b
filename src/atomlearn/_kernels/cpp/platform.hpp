// What every kernel shares: index type, vector instructions, thread counts.
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

// GCC compiles single functions for other processors of this family than the baseline.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__)
#define ATOMLEARN_X86
#define ATOMLEARN_FOR(...) __attribute__((noinline, target(__VA_ARGS__)))
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
// Of the terms of a sum: more than it is rounded by.
constexpr double kNoise = 5e-15;
// Smaller shares (of a diagonal by a pivot, of all weights by one) count as zero.
constexpr double kTiny = 1e-12;
// Doubles of a line of the cache, and of the widest register.
constexpr Index kVectorLanes = 8;
// Entries worked on at a time, which stay in the first-level cache.
constexpr Index kRun = 256;
// Entries that lie apart are fetched so far ahead.
constexpr Index kAhead = 12;
// Plain operations in the time of one that sorts or searches, about.
constexpr Index kCostly = 16;
// Operations of a blocked product or factorization in the time of one that reads its entries.
constexpr double kBlasGain = 16.0;

// Whether this process is the child of a fork. OpenMP's threads do not survive one, and its pool
// waits for them forever: a child runs every kernel on the thread that called it.
inline bool forked = false;

// The vector instructions that hot loops may use, each including those before it.
enum class Simd { baseline, avx2, avx512 };

// Chosen once, when the module is loaded: a wheel built on one machine runs fast on another.
inline Simd simd = Simd::baseline;

// The loop `Body` compiled for each of them; a call runs the one that was chosen. `Body` and the
// functions it calls must be ATOMLEARN_INLINE: a call that stays a call runs baseline code.
template <auto Body>
struct Vectorized;
template <class Result, class... Args, Result (*Body)(Args...)>
struct Vectorized<Body> {
    Result operator()(Args... args) const {
#ifdef ATOMLEARN_X86
        if (simd == Simd::avx512) return avx512(args...);
        if (simd == Simd::avx2) return avx2(args...);
#endif
        return baseline(args...);
    }

  private:
#ifdef ATOMLEARN_X86
    ATOMLEARN_FOR("arch=x86-64-v4") static Result avx512(Args... args) { return Body(args...); }
    ATOMLEARN_FOR("arch=x86-64-v3") static Result avx2(Args... args) { return Body(args...); }
#endif
    __attribute__((noinline)) static Result baseline(Args... args) { return Body(args...); }
};
template <auto Body>
constexpr Vectorized<Body> vectorized{};

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
