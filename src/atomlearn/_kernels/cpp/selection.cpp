// The entries of largest magnitude: a threshold from a sample, one pass that keeps what reaches
// it, and an exact selection among the few that are left.
#include <cmath>
#include <vector>

#include "bindings.hpp"
#include "sampling.hpp"

namespace atomlearn {
namespace {

struct Entry {
    double value;
    Index index;
};

inline bool before(const Entry& a, const Entry& b) {
    const double left = std::fabs(a.value), right = std::fabs(b.value);
    return left > right || (left == right && a.index < b.index);
}

// Entries above the threshold, and the first `most` entries on it, of `n_level`.
struct Candidates {
    std::vector<Entry> above;
    std::vector<Entry> level;
    Index n_level = 0;
    bool nan = false;
};

constexpr Index kBlock = 32;

template <class T>
ATOMLEARN_INLINE void filter(const T* z, Range range, T threshold, Index most, Candidates& found) {
    for (Index start = range.begin; start < range.end; start += kBlock) {
        const Index n = std::min(kBlock, range.end - start);
        if (n == kBlock) {
            int hit = 0;
#pragma omp simd reduction(| : hit)
            for (Index e = 0; e < kBlock; ++e) hit |= !(std::fabs(z[start + e]) < threshold);
            if (!hit) continue;
        }
        for (Index i = start; i < start + n; ++i) {
            const T magnitude = std::fabs(z[i]);
            if (magnitude > threshold) {
                found.above.push_back({static_cast<double>(z[i]), i});
            } else if (magnitude == threshold) {
                if (found.n_level++ < most) found.level.push_back({static_cast<double>(z[i]), i});
            } else if (!(magnitude < threshold)) {
                found.nan = true;
            }
        }
    }
}

// A level that about `count` magnitudes exceed, from a sample; -1 to keep everything.
template <class T>
T sampled_threshold(const T* z, Index n, Index count, double margin) {
    const Index size = std::clamp<Index>(n / 128, 1024, 65536);
    if (2 * size >= n || 2 * count >= n) return T(-1);
    std::vector<T> sample = sampled_magnitudes<T, T>(z, n, size);
    const double expected = static_cast<double>(count) * size / n;
    const Index rank = static_cast<Index>(expected + margin * std::sqrt(expected) + margin);
    if (rank >= size) return T(-1);
    // NaN breaks the order of nth_element; the filter reports it whatever the threshold is.
    for (T& value : sample)
        if (value != value) value = std::numeric_limits<T>::infinity();
    std::nth_element(sample.begin(), sample.begin() + rank, sample.end(), std::greater<T>());
    return sample[rank];
}

template <class T>
Candidates candidates(const T* z, Index n, Index count) {
    const int threads = threads_for(n);
    for (double margin = 4.0;; margin *= 8.0) {
        const T threshold = sampled_threshold(z, n, count, margin);
        std::vector<Candidates> found(static_cast<std::size_t>(threads));
        in_parallel(threads, [&](int part) {
            vectorized<filter<T>>(z, piece(n, part, threads, kBlock), threshold, count,
                                  found[part]);
        });
        Candidates all;
        for (const Candidates& one : found) {
            all.above.insert(all.above.end(), one.above.begin(), one.above.end());
            all.level.insert(all.level.end(), one.level.begin(), one.level.end());
            all.n_level += one.n_level;
            all.nan = all.nan || one.nan;
        }
        const Index reached = static_cast<Index>(all.above.size()) + all.n_level;
        if (all.nan || reached >= count) return all;
    }
}

// The entries of largest magnitude, as many as there is room for, largest first, ties by smaller
// index. False where one is NaN.
bool top(const Vector& z, const OutPositions& indices, const OutDoubles& values) {
    const Index count = size_of(indices);
    return by_float(z, [&](const auto* data) {
        Candidates found = candidates(data, size_of(z), count);
        std::vector<Entry>& above = found.above;
        if (static_cast<Index>(above.size()) > count) {
            std::nth_element(above.begin(), above.begin() + count, above.end(), before);
            above.resize(as_size(count));
        }
        std::sort(above.begin(), above.end(), before);
        const Index n_above = static_cast<Index>(above.size());
        for (Index e = 0; e < count && !found.nan; ++e) {
            const Entry& entry = e < n_above ? above[e] : found.level[e - n_above];
            indices.data()[e] = entry.index;
            values.data()[e] = entry.value;
        }
        return !found.nan;
    });
}

}  // namespace

void bind_selection(nb::module_& m) {
    define(m, "top", &top);
}

}  // namespace atomlearn
