// Sparse products, shared among threads by stored entries.
#include <memory>
#include <vector>

#include "compressed.hpp"

namespace atomlearn {
namespace {

template <bool Squared>
inline double term(double x) {
    return Squared ? x * x : x;
}

template <bool Squared, class T, class I>
ATOMLEARN_INLINE double dot(const T* data, const I* indices, Index n, const double* v) {
    double sum = 0.0;
    if (n < 16) {  // full registers cost more than they save
        for (Index e = 0; e < n; ++e) sum += v[indices[e]] * term<Squared>(data[e]);
    } else {
#pragma omp simd reduction(+ : sum)
        for (Index e = 0; e < n; ++e) sum += v[indices[e]] * term<Squared>(data[e]);
    }
    return sum;
}

template <bool Squared, class T, class I>
ATOMLEARN_INLINE void dots_of(const Compressed<T, I>& x, const double* v, Range majors,
                              double* out) {
    const T* data = x.data;
    const I *indices = x.indices, *indptr = x.indptr;
    Index begin = indptr[majors.begin];
    for (Index m = majors.begin; m < majors.end; ++m) {
        const Index end = indptr[m + 1];
        out[m] = dot<Squared>(data + begin, indices + begin, end - begin, v);
        begin = end;
    }
}

template <bool Squared, class T, class I>
void all_dots(const Compressed<T, I>& x, const double* v, double* out) {
    by_entries(x.indptr, x.count, 1,
               [&](Range majors) { vectorized<dots_of<Squared, T, I>>(x, v, majors, out); });
}

// Adds the majors of a range whose v is not zero to `out`.
template <bool Squared, class T, class I>
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

template <bool Squared, class T, class I>
void sums_by_buffer(const Compressed<T, I>& x, const double* v, int threads, double* out) {
    const Index parts = 8 * threads;
    const std::vector<Index> cuts = even_cuts(x.indptr, x.count, parts);
    std::unique_ptr<double[]> extra(new double[static_cast<std::size_t>((threads - 1) * x.length)]);
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num();
        double* mine = me == 0 ? out : extra.get() + (me - 1) * x.length;
        std::fill(mine, mine + x.length, 0.0);
#pragma omp for schedule(dynamic)
        for (Index part = 0; part < parts; ++part)
            add_majors<Squared>(x, v, {cuts[part], cuts[part + 1]}, mine);
        const int team = omp_get_num_threads();
#pragma omp for schedule(static)
        for (Index j = 0; j < x.length; ++j)
            for (int other = 1; other < team; ++other) out[j] += extra[(other - 1) * x.length + j];
    }
}

template <bool Squared, class T, class I>
void all_sums(const Compressed<T, I>& x, const double* v, double* out) {
    Index entries = 0;
    for (Index m = 0; m < x.count; ++m)
        if (v[m] != 0.0) entries += x.end(m) - x.begin(m);
    // Each further thread adds up in a buffer of its own, which must be worth its size.
    const Index worth = 1 + entries / std::max<Index>(x.length, 1);
    const int threads = static_cast<int>(std::min<Index>(threads_for(entries), worth));
    if (threads > 1) return sums_by_buffer<Squared>(x, v, threads, out);
    std::fill(out, out + x.length, 0.0);
    add_majors<Squared>(x, v, {0, x.count}, out);
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

// The product of two columns, weighted. Both ways meet the same entries in the same order, so they
// give the same bits.
template <class T, class I>
double pair_sum(const Compressed<T, I>& x, Index first, Index second, const double* v) {
    Index a = x.begin(first), a_end = x.end(first);
    Index b = x.begin(second), b_end = x.end(second);
    if (a_end - a > b_end - b) {
        std::swap(a, b);
        std::swap(a_end, b_end);
    }
    const bool search = kCostly * (a_end - a) < b_end - b;
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
    return sum;
}

// out = sum_e v_e x_me (or x_me^2) of each stored vector, or (not `dots`) the sum of the vectors.
void sparse_product(const Vector& data, const Vector& indices, const Vector& indptr, bool dots,
                    bool squared, const Doubles& v, const OutDoubles& out) {
    const auto form = [&]<bool Squared>(std::bool_constant<Squared>) {
        by_compressed(data, indices, indptr, dots ? size_of(v) : size_of(out), std::nullopt,
                      [&](const auto& x) {
                          expect(dots || size_of(v) == x.count, "v must have a number a vector");
                          dots ? all_dots<Squared>(x, v.data(), out.data())
                               : all_sums<Squared>(x, v.data(), out.data());
                      });
    };
    squared ? form(std::true_type{}) : form(std::false_type{});
}

// out (length x length) = sum over majors of weights[major] * x x'; no index twice in a major.
void sparse_gram(const Vector& data, const Vector& indices, const Vector& indptr,
                 const Doubles& weights, const OutMatrix& result) {
    const Index size = size_of(result), tile = 64;
    double* out = static_cast<double*>(result.data());
    std::fill(out, out + size * size, 0.0);
    by_compressed(data, indices, indptr, size, std::nullopt, [&](const auto& x) {
        expect(size_of(weights) == x.count, "weights must have a number a row");
        // What turning a range over takes is bounded by this, or by the result.
        const Index most = std::max<Index>(Index{1} << 16, size * size / 32);
        for (Index first = 0, last = 0; first < x.count; first = last) {
            for (Index entries = 0; last < x.count && (last == first || entries < most); ++last)
                entries += x.end(last) - x.begin(last);
            add_squares(x, weights.data(), {first, last}, out);
        }
    });
#pragma omp parallel for schedule(dynamic) num_threads(threads_for(size* size))
    for (Index first = 0; first < size; first += tile)
        for (Index left = 0; left <= first; left += tile)
            for (Index a = first; a < std::min(first + tile, size); ++a)
                for (Index b = left; b < std::min(left + tile, a); ++b)
                    out[a * size + b] = out[b * size + a] = out[a * size + b] + out[b * size + a];
}

// out[p] = sum_i v_i x_i,first[p] x_i,second[p] for columns with sorted rows.
void sparse_pairs(const Vector& data, const Vector& indices, const Vector& indptr,
                  const Positions& first, const Positions& second, const Doubles& v,
                  const OutDoubles& out) {
    const Index count = size_of(first);
    expect(size_of(second) == count, "first and second must pair up");
    expect_within(first, size_of(indptr) - 1);
    expect_within(second, size_of(indptr) - 1);
    by_compressed(data, indices, indptr, size_of(v), std::nullopt, [&](const auto& x) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads_for(64 * count))
        for (Index pair = 0; pair < count; ++pair)
            out.data()[pair] = pair_sum(x, first.data()[pair], second.data()[pair], v.data());
    });
}

}  // namespace

void bind_sparse(nb::module_& m) {
    define(m, "sparse_product", &sparse_product);
    define(m, "sparse_gram", &sparse_gram);
    define(m, "sparse_pairs", &sparse_pairs);
}

}  // namespace atomlearn
