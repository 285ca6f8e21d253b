// Sparse products, shared among threads by stored entries.
#include <memory>
#include <vector>

#include "kernels.hpp"

namespace atomlearn {
namespace {

template <bool Squared>
inline double term(double x) {
    return Squared ? x * x : x;
}

// Cuts the majors where stored entries (plus one a major, for the empty ones) are even.
template <class T, class I>
std::vector<Index> even_cuts(const Compressed<T, I>& x, Index parts) {
    std::vector<Index> cuts(static_cast<std::size_t>(parts + 1), x.count);
    cuts[0] = 0;
    const double total = static_cast<double>(x.indptr[x.count]) + static_cast<double>(x.count);
    for (Index part = 1; part < parts; ++part) {
        const Index target = static_cast<Index>(total * part / parts);
        Index low = cuts[part - 1], high = x.count;
        while (low < high) {
            const Index middle = low + (high - low) / 2;
            if (static_cast<Index>(x.indptr[middle]) + middle < target)
                low = middle + 1;
            else
                high = middle;
        }
        cuts[part] = low;
    }
    return cuts;
}

template <class T, class I, bool Squared>
ATOMLEARN_INLINE double dot(const T* data, const I* indices, Index n, const double* v) {
    double sum = 0.0;
    if (n < 16) {
        for (Index e = 0; e < n; ++e) sum += v[indices[e]] * term<Squared>(data[e]);
    } else {
#pragma omp simd reduction(+ : sum)
        for (Index e = 0; e < n; ++e) sum += v[indices[e]] * term<Squared>(data[e]);
    }
    return sum;
}

template <class T, class I, bool Squared>
ATOMLEARN_INLINE void dots_of(const Compressed<T, I>& x, const double* v, Range majors,
                              double* out) {
    const T* data = x.data;
    const I* indices = x.indices;
    const I* indptr = x.indptr;
    Index begin = indptr[majors.begin];
    for (Index m = majors.begin; m < majors.end; ++m) {
        const Index end = indptr[m + 1];
        out[m] = dot<T, I, Squared>(data + begin, indices + begin, end - begin, v);
        begin = end;
    }
}

template <class T, class I, bool Squared>
void dots(const Compressed<T, I>& x, const double* v, double* out) {
    const int threads = threads_for(static_cast<Index>(x.indptr[x.count]) + x.count);
    if (threads == 1) return vectorized<dots_of<T, I, Squared>>(x, v, {0, x.count}, out);
    const Index parts = 8 * threads;
    const std::vector<Index> cuts = even_cuts(x, parts);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (Index part = 0; part < parts; ++part)
        vectorized<dots_of<T, I, Squared>>(x, v, {cuts[part], cuts[part + 1]}, out);
}

// Adds the majors of a range whose v is not zero to `out`.
template <class T, class I, bool Squared>
void add_majors(const Compressed<T, I>& x, const double* v, Range majors, double* out) {
    const T* data = x.data;
    const I* indices = x.indices;
    for (Index m = majors.begin; m < majors.end; ++m) {
        const double factor = v[m];
        if (factor == 0.0) continue;
        const Index end = x.end(m);
        for (Index e = x.begin(m); e < end; ++e) out[indices[e]] += factor * term<Squared>(data[e]);
    }
}

template <class T, class I, bool Squared>
void sums_by_buffer(const Compressed<T, I>& x, const double* v, int threads, double* out) {
    const Index parts = 8 * threads;
    const std::vector<Index> cuts = even_cuts(x, parts);
    std::unique_ptr<double[]> extra(new double[static_cast<std::size_t>((threads - 1) * x.length)]);
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num();
        double* mine = me == 0 ? out : extra.get() + (me - 1) * x.length;
        std::fill(mine, mine + x.length, 0.0);
#pragma omp for schedule(dynamic)
        for (Index part = 0; part < parts; ++part)
            add_majors<T, I, Squared>(x, v, {cuts[part], cuts[part + 1]}, mine);
        const int team = omp_get_num_threads();
#pragma omp for schedule(static)
        for (Index j = 0; j < x.length; ++j)
            for (int other = 1; other < team; ++other) out[j] += extra[(other - 1) * x.length + j];
    }
}

template <class T, class I, bool Squared>
void sums(const Compressed<T, I>& x, const double* v, double* out) {
    Index entries = 0;
    for (Index m = 0; m < x.count; ++m)
        if (v[m] != 0.0) entries += x.end(m) - x.begin(m);
    // Each further thread adds up in a buffer of its own, which must be worth its size.
    const Index worth = 1 + entries / std::max<Index>(x.length, 1);
    const int threads = static_cast<int>(std::min<Index>(threads_for(entries), worth));
    if (threads > 1) return sums_by_buffer<T, I, Squared>(x, v, threads, out);
    std::fill(out, out + x.length, 0.0);
    add_majors<T, I, Squared>(x, v, {0, x.count}, out);
}

// For each index, in which majors of a range it is stored and where there: O(entries + length).
struct Turned {
    std::vector<Index> starts, majors, places;
};

template <class T, class I>
Turned turned(const Compressed<T, I>& x, const double* weights, Range range) {
    Turned result{std::vector<Index>(static_cast<std::size_t>(x.length) + 1, 0), {}, {}};
    for (Index m = range.begin; m < range.end; ++m)
        if (weights[m] != 0.0)
            for (Index e = x.begin(m); e < x.end(m); ++e) ++result.starts[x.indices[e] + 1];
    for (Index j = 0; j < x.length; ++j) result.starts[j + 1] += result.starts[j];
    result.majors.resize(static_cast<std::size_t>(result.starts[x.length]));
    result.places.resize(result.majors.size());
    std::vector<Index> next(result.starts.begin(), result.starts.end() - 1);
    for (Index m = range.begin; m < range.end; ++m)
        if (weights[m] != 0.0)
            for (Index e = x.begin(m); e < x.end(m); ++e) {
                const Index at = next[x.indices[e]]++;
                result.majors[at] = m;
                result.places[at] = e;
            }
    return result;
}

// Adds w_m x_m x_m' of a range of majors, each pair of entries once, to either triangle. One row of
// the result at a time, which stays in the cache, in the order of the majors whatever the threads.
template <class T, class I>
void add_squares(const Compressed<T, I>& x, const double* weights, Range range, double* out) {
    const Turned by_index = turned(x, weights, range);
    const int threads = threads_for(static_cast<Index>(by_index.places.size()) * 16);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (Index a = x.length - 1; a >= 0; --a) {
        double* row = out + a * x.length;
        for (Index at = by_index.starts[a]; at < by_index.starts[a + 1]; ++at) {
            const Index m = by_index.majors[at], place = by_index.places[at];
            const double factor = weights[m] * static_cast<double>(x.data[place]);
            for (Index e = x.begin(m); e <= place; ++e)
                row[x.indices[e]] += factor * static_cast<double>(x.data[e]);
        }
    }
}

}  // namespace

template <class T, class I>
void sparse_dots(const Compressed<T, I>& x, const double* v, double* out, bool squared) {
    squared ? dots<T, I, true>(x, v, out) : dots<T, I, false>(x, v, out);
}

template <class T, class I>
void sparse_sums(const Compressed<T, I>& x, const double* v, double* out, bool squared) {
    squared ? sums<T, I, true>(x, v, out) : sums<T, I, false>(x, v, out);
}

template <class T, class I>
void sparse_squares(const Compressed<T, I>& x, const double* weights, double* out) {
    const Index size = x.length, tile = 64;
    std::fill(out, out + size * size, 0.0);
    // What turning a range over takes is bounded by this, or by the result.
    const Index most = std::max<Index>(Index{1} << 16, size * size / 32);
    for (Index first = 0, last = 0; first < x.count; first = last) {
        for (Index entries = 0; last < x.count && (last == first || entries < most); ++last)
            entries += x.end(last) - x.begin(last);
        add_squares(x, weights, {first, last}, out);
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads_for(size* size))
    for (Index first = 0; first < size; first += tile)
        for (Index left = 0; left <= first; left += tile)
            for (Index a = first; a < std::min(first + tile, size); ++a)
                for (Index b = left; b < std::min(left + tile, a); ++b)
                    out[a * size + b] = out[b * size + a] = out[a * size + b] + out[b * size + a];
}

template <class T, class I>
void sparse_pair_sums(const Compressed<T, I>& x, const Index* first, const Index* second,
                      Index count, const double* v, double* out) {
    // Both ways meet the same entries in the same order, so they give the same bits.
    constexpr Index kMuchShorter = 16;
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads_for(64 * count))
    for (Index pair = 0; pair < count; ++pair) {
        Index a = x.begin(first[pair]), a_end = x.end(first[pair]);
        Index b = x.begin(second[pair]), b_end = x.end(second[pair]);
        if (a_end - a > b_end - b) {
            std::swap(a, b);
            std::swap(a_end, b_end);
        }
        const bool search = kMuchShorter * (a_end - a) < b_end - b;
        double sum = 0.0;
        while (a < a_end && b < b_end) {
            const I row = x.indices[a];
            if (search) b = std::lower_bound(x.indices + b, x.indices + b_end, row) - x.indices;
            if (b == b_end) break;
            const I other = x.indices[b];
            if (row == other)
                sum += v[row] * (static_cast<double>(x.data[a]) * static_cast<double>(x.data[b]));
            a += row <= other;
            b += other <= row;
        }
        out[pair] = sum;
    }
}

#define ATOMLEARN_INSTANTIATE(T, I)                                                           \
    template void sparse_dots<T, I>(const Compressed<T, I>&, const double*, double*, bool);   \
    template void sparse_sums<T, I>(const Compressed<T, I>&, const double*, double*, bool);   \
    template void sparse_squares<T, I>(const Compressed<T, I>&, const double*, double*);      \
    template void sparse_pair_sums<T, I>(const Compressed<T, I>&, const Index*, const Index*, \
                                         Index, const double*, double*);
ATOMLEARN_INSTANTIATE(float, std::int32_t)
ATOMLEARN_INSTANTIATE(float, std::int64_t)
ATOMLEARN_INSTANTIATE(double, std::int32_t)
ATOMLEARN_INSTANTIATE(double, std::int64_t)

}  // namespace atomlearn
