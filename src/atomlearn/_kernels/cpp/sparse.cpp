// Sparse products, shared among threads by stored entries, and the check that makes them safe.
#include <atomic>
#include <vector>

#include "kernels.hpp"

namespace atomlearn {
namespace {

template <bool Squared>
inline double term(double x) {
    return Squared ? x * x : x;
}

template <class T, class I>
Index stored(const Compressed<T, I>& x) {
    if (!x.major_subset) return static_cast<Index>(x.indptr[x.count]);
    Index total = 0;
    for (Index m = 0; m < x.count; ++m) total += x.end(m) - x.begin(m);
    return total;
}

// Cuts the majors where stored entries (plus one a major, for the empty ones) are even.
template <class T, class I>
std::vector<Index> even_cuts(const Compressed<T, I>& x, Index parts) {
    std::vector<Index> cuts(static_cast<std::size_t>(parts + 1), 0);
    cuts[parts] = x.count;
    if (x.major_subset) {
        for (Index part = 1; part < parts; ++part) cuts[part] = x.count * part / parts;
        return cuts;
    }
    const Index total = static_cast<Index>(x.indptr[x.count]) + x.count;
    for (Index part = 1; part < parts; ++part) {
        const Index target = total / parts * part;
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
ATOMLEARN_CLONES void dots_of(Compressed<T, I> x, const double* v, Range majors, double* out) {
    for (Index m = majors.begin; m < majors.end; ++m) {
        const Index begin = x.begin(m), n = x.end(m) - begin;
        const T* data = x.data + begin;
        const I* indices = x.indices + begin;
        double sum = 0.0;
        if (n < 16) {
            for (Index e = 0; e < n; ++e) sum += v[indices[e]] * term<Squared>(data[e]);
        } else {
#pragma omp simd reduction(+ : sum)
            for (Index e = 0; e < n; ++e) sum += v[indices[e]] * term<Squared>(data[e]);
        }
        out[m] = sum;
    }
}

template <class T, class I, bool Squared>
void dots(const Compressed<T, I>& x, const double* v, double* out) {
    const int threads = threads_for(stored(x) + x.count);
    if (threads == 1) return dots_of<T, I, Squared>(x, v, {0, x.count}, out);
    const Index parts = 8 * threads;
    const std::vector<Index> cuts = even_cuts(x, parts);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (Index part = 0; part < parts; ++part)
        dots_of<T, I, Squared>(x, v, {cuts[part], cuts[part + 1]}, out);
}

// The majors that count (v != 0).
template <class T, class I>
struct Active {
    std::vector<Index> majors;
    std::vector<Index> entries{0};  // stored entries before each of them
    Active(const Compressed<T, I>& x, const double* v) {
        for (Index m = 0; m < x.count; ++m) {
            if (v[m] == 0.0) continue;
            majors.push_back(m);
            entries.push_back(entries.back() + x.end(m) - x.begin(m));
        }
    }
    Index stored() const { return entries.back(); }
    // Share `part` of `parts`, even in stored entries.
    Range share(Index part, Index parts) const {
        const auto cut = [&](Index p) {
            const Index target = stored() * p / parts;
            return std::lower_bound(entries.begin(), entries.end(), target) - entries.begin();
        };
        const Index count = static_cast<Index>(majors.size());
        return {std::min<Index>(part == 0 ? 0 : cut(part), count),
                std::min<Index>(part + 1 == parts ? count : cut(part + 1), count)};
    }
};

template <class T, class I, bool Squared>
void add_entries(const T* data, const I* indices, Index n, double v, double* out) {
    for (Index e = 0; e < n; ++e) out[indices[e]] += v * term<Squared>(data[e]);
}

template <class T, class I>
bool all_sorted(const Compressed<T, I>& x, const std::vector<Index>& majors, int threads) {
    bool sorted = true;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(&& : sorted)
    for (std::size_t a = 0; a < majors.size(); ++a) {
        const Index begin = x.begin(majors[a]), end = x.end(majors[a]);
        bool here = true;
        for (Index e = begin + 1; e < end; ++e) here &= x.indices[e - 1] <= x.indices[e];
        sorted = sorted && here;
    }
    return sorted;
}

// Cuts of [0, length) with about as many stored entries in each part, from a sample of indices.
template <class T, class I>
std::vector<Index> minor_cuts(const Compressed<T, I>& x, const Active<T, I>& active, int parts) {
    std::vector<Index> sample;
    constexpr Index kWanted = 4096;
    const Index count = static_cast<Index>(active.majors.size());
    for (Index a = 0; a < count; a += std::max<Index>(1, count / 1024)) {
        const Index begin = x.begin(active.majors[a]), end = x.end(active.majors[a]);
        const Index take = std::max<Index>(1, (end - begin) * kWanted / (active.stored() + 1));
        for (Index e = begin; e < end; e += std::max<Index>(1, (end - begin) / (4 * take)))
            sample.push_back(static_cast<Index>(x.indices[e]));
    }
    std::sort(sample.begin(), sample.end());
    std::vector<Index> cuts(static_cast<std::size_t>(parts + 1), 0);
    cuts[parts] = x.length;
    for (int part = 1; part < parts; ++part)
        cuts[part] =
            sample.empty() ? x.length * part / parts : sample[sample.size() * part / parts];
    return cuts;
}

// Each thread owns a range of minors: no buffers of size `length`, no atomic additions.
template <class T, class I, bool Squared>
void sums_by_range(const Compressed<T, I>& x, const double* v, const Active<T, I>& active,
                   int threads, double* out) {
    const std::vector<Index> cuts = minor_cuts(x, active, threads);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; ++part) {
        std::fill(out + cuts[part], out + cuts[part + 1], 0.0);
        for (const Index m : active.majors) {
            const I* first = x.indices + x.begin(m);
            const I* last = x.indices + x.end(m);
            const auto below = [](I index, Index cut) { return static_cast<Index>(index) < cut; };
            const I* begin = part == 0 ? first : std::lower_bound(first, last, cuts[part], below);
            const I* end =
                part + 1 == threads ? last : std::lower_bound(begin, last, cuts[part + 1], below);
            add_entries<T, I, Squared>(x.data + (begin - x.indices), begin, end - begin, v[m], out);
        }
    }
}

template <class T, class I, bool Squared>
void sums_by_buffer(const Compressed<T, I>& x, const double* v, const Active<T, I>& active,
                    int threads, double* out) {
    std::vector<double> extra(static_cast<std::size_t>((threads - 1) * x.length));
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int part = 0; part < threads; ++part) {
            double* sums = part == 0 ? out : extra.data() + (part - 1) * x.length;
            std::fill(sums, sums + x.length, 0.0);
            const Range share = active.share(part, threads);
            for (Index a = share.begin; a < share.end; ++a) {
                const Index m = active.majors[a], begin = x.begin(m);
                add_entries<T, I, Squared>(x.data + begin, x.indices + begin, x.end(m) - begin,
                                           v[m], sums);
            }
        }
#pragma omp for schedule(static)
        for (Index j = 0; j < x.length; ++j)
            for (int part = 1; part < threads; ++part) out[j] += extra[(part - 1) * x.length + j];
    }
}

template <class T, class I, bool Squared>
void sums(const Compressed<T, I>& x, const double* v, double* out) {
    const Active<T, I> active(x, v);
    const int threads = threads_for(active.stored());
    if (threads > 1 && (threads - 1) * x.length <= active.stored())
        return sums_by_buffer<T, I, Squared>(x, v, active, threads, out);
    if (threads > 1 && all_sorted(x, active.majors, threads))
        return sums_by_range<T, I, Squared>(x, v, active, threads, out);
    std::fill(out, out + x.length, 0.0);
    for (const Index m : active.majors)
        add_entries<T, I, Squared>(x.data + x.begin(m), x.indices + x.begin(m),
                                   x.end(m) - x.begin(m), v[m], out);
}

template <class I>
ATOMLEARN_CLONES bool within(const I* indices, Index n, Index limit) {
    I least = std::numeric_limits<I>::max(), most = std::numeric_limits<I>::min();
#pragma omp simd reduction(min : least) reduction(max : most)
    for (Index e = 0; e < n; ++e) {
        least = indices[e] < least ? indices[e] : least;
        most = indices[e] > most ? indices[e] : most;
    }
    return n == 0 || (least >= 0 && static_cast<Index>(most) < limit);
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

template <class I>
SparseCheck sparse_check(const I* indices, Index n_indices, const I* indptr, Index n_major,
                         Index n_minor) {
    if (indptr[0] != 0) return {SparseFault::first_pointer, 0};
    for (Index m = 0; m < n_major; ++m)
        if (indptr[m + 1] < indptr[m]) return {SparseFault::decreasing_pointer, m + 1};
    if (static_cast<Index>(indptr[n_major]) != n_indices)
        return {SparseFault::last_pointer, n_major};
    const int threads = threads_for(n_indices);
    bool good = true;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(&& : good)
    for (int part = 0; part < threads; ++part) {
        const Range range = piece(n_indices, part, threads);
        good = good && within(indices + range.begin, range.size(), n_minor);
    }
    if (good) return {SparseFault::none, 0};
    for (Index e = 0; e < n_indices; ++e) {
        if (indices[e] < 0) return {SparseFault::negative_index, e};
        if (static_cast<Index>(indices[e]) >= n_minor) return {SparseFault::index_too_large, e};
    }
    return {SparseFault::none, 0};
}

#define ATOMLEARN_INSTANTIATE(T, I)                                                         \
    template void sparse_dots<T, I>(const Compressed<T, I>&, const double*, double*, bool); \
    template void sparse_sums<T, I>(const Compressed<T, I>&, const double*, double*, bool);
ATOMLEARN_INSTANTIATE(float, std::int32_t)
ATOMLEARN_INSTANTIATE(float, std::int64_t)
ATOMLEARN_INSTANTIATE(double, std::int32_t)
ATOMLEARN_INSTANTIATE(double, std::int64_t)
template SparseCheck sparse_check<std::int32_t>(const std::int32_t*, Index, const std::int32_t*,
                                                Index, Index);
template SparseCheck sparse_check<std::int64_t>(const std::int64_t*, Index, const std::int64_t*,
                                                Index, Index);

}  // namespace atomlearn
