// Pairs of columns: bounds that exclude most of them, and the sums of the others row by row.
#include "pairs.hpp"

#include <cmath>
#include <vector>

namespace atomlearn {
namespace {

// sqrt(sum |v_k| x_ki^2) over the rows of one sign, for entries whose squares leave the range.
template <class T, class I>
double scaled_radius(const Compressed<T, I>& x, Index column, const double* packed, double sign) {
    const Index begin = x.begin(column), end = x.end(column);
    double peak = 0.0;
    for (Index e = begin; e < end; ++e)
        if (sign * packed[3 * static_cast<Index>(x.indices[e])] > 0.0)
            peak = std::max(peak, std::fabs(static_cast<double>(x.data[e])));
    if (peak == 0.0) return 0.0;
    double sum = 0.0;
    for (Index e = begin; e < end; ++e) {
        const double weight = sign * packed[3 * static_cast<Index>(x.indices[e])];
        const double share = static_cast<double>(x.data[e]) / peak;
        if (weight > 0.0) sum += weight * share * share;
    }
    // Underflow: what is not zero must not look so.
    return std::max(std::sqrt(sum), 1e-150) * peak;
}

template <class T, class I>
void bounds_of(const Compressed<T, I>& x, Index column, const double* packed, double* upper,
               double* rising, double* falling) {
    const Index begin = x.begin(column), end = x.end(column);
    double up = 0.0, down = 0.0, above = 0.0, below = 0.0;
    for (Index e = begin; e < end; ++e) {
        const double* row = packed + 3 * static_cast<Index>(x.indices[e]);
        const double value = static_cast<double>(x.data[e]);
        const double square = row[0] * value * value;
        up += std::max(square, 0.0);
        down -= std::min(square, 0.0);
        const double one = value * row[1], other = value * row[2];
        above += std::max(one, other);
        below -= std::min(one, other);
    }
    const auto doubtful = [](double sum) { return !(sum > 1e-200 && sum < 1e200); };
    *rising = doubtful(up) ? scaled_radius(x, column, packed, 1.0) : std::sqrt(up);
    *falling = doubtful(down) ? scaled_radius(x, column, packed, -1.0) : std::sqrt(down);
    *upper = std::max(above, below);
}

// Largest magnitude of a run.
template <class T>
ATOMLEARN_INLINE T peak_of(const T* values, Index n) {
    T peak = 0;
    bool good = true;
#pragma omp simd reduction(max : peak) reduction(&& : good)
    for (Index i = 0; i < n; ++i) {
        const T size = std::fabs(values[i]);
        peak = size > peak ? size : peak;
        good = good && size <= std::numeric_limits<T>::max();
    }
    return good ? peak : std::numeric_limits<T>::infinity();
}

ATOMLEARN_INLINE Index nonzeros_of(const double* values, Index n) {
    Index number = 0;
#pragma omp simd reduction(+ : number)
    for (Index i = 0; i < n; ++i) number += values[i] != 0.0;
    return number;
}

constexpr Index kRun = 256;

// One position a of the search: its sums with all b <= last.
template <class T, class I>
class Line {
  public:
    Line(const Compressed<T, I>& x, const PairRows<T>& rows, const double* v,
         const PairScratch& scratch, PairFound& found, PairCounts& counts)
        : x_(x), rows_(rows), v_(v), scratch_(scratch), found_(found), counts_(counts) {}

    // Every place up to `last` is looked at afterwards.
    void scan(Index column, Index a, Index last, double square, double least) {
        add<false>(column, last);
        if (last == a) scratch_.sums[a] *= square;
        for (Index start = 0; start <= last; start += kRun) {
            const Index size = std::min(kRun, last + 1 - start);
            double* run = scratch_.sums + start;
            counts_.pairs += vectorized<nonzeros_of>(run, size);
            if (vectorized<peak_of<double>>(run, size) >= least)
                for (Index b = 0; b < size; ++b)
                    if (std::fabs(run[b]) >= least) take(a, start + b, run[b]);
            std::fill(run, run + size, 0.0);
        }
    }

    // The same where few places are reached: they are listed.
    void list(Index column, Index a, Index last, double square, double least) {
        const Index size = add<true>(column, last);
        if (last == a) scratch_.sums[a] *= square;
        for (Index t = 0; t < size; ++t) {
            const Index b = scratch_.touched[t];
            if (std::fabs(scratch_.sums[b]) >= least) take(a, b, scratch_.sums[b]);
            scratch_.sums[b] = 0.0;
            scratch_.seen[b] = 0;
        }
        counts_.pairs += size;
    }

  private:
    template <bool Listed>
    Index add(Index column, Index last) {
        constexpr Index kAhead = 12, kFurther = 24;
        const Index begin = x_.begin(column), end = x_.end(column);
        double* sums = scratch_.sums;
        Index size = 0, products = 0;
        for (Index e = begin; e < end; ++e) {
            // Rows lie far apart: where the next ones begin is asked for in time.
            if (e + kFurther < end) __builtin_prefetch(rows_.begins + x_.indices[e + kFurther]);
            if (e + kAhead < end)
                __builtin_prefetch(rows_.entries + rows_.begins[x_.indices[e + kAhead]]);
            const Index row = static_cast<Index>(x_.indices[e]);
            const double factor = v_[row] * static_cast<double>(x_.data[e]);
            const PairEntry<T>* entry = rows_.entries + rows_.begins[row];
            const PairEntry<T>* stop = entry + rows_.sizes[row];
            const PairEntry<T>* first = entry;
            for (; entry < stop && entry->position <= last; ++entry) {
                const std::int32_t b = entry->position;
                if (Listed && !scratch_.seen[b]) {
                    scratch_.seen[b] = 1;
                    scratch_.touched[size++] = b;
                }
                sums[b] += factor * static_cast<double>(entry->value);
            }
            products += entry - first;
        }
        counts_.products += products;
        return size;
    }

    void take(Index a, Index b, double sum) {
        found_.first[found_.size] = static_cast<std::int32_t>(a);
        found_.second[found_.size] = static_cast<std::int32_t>(b);
        found_.sums[found_.size++] = sum;
    }

    const Compressed<T, I>& x_;
    const PairRows<T>& rows_;
    const double* v_;
    const PairScratch& scratch_;
    PairFound& found_;
    PairCounts& counts_;
};

}  // namespace

template <class T, class I>
void row_extremes(const Compressed<T, I>& x, double* low, double* high) {
    std::fill(low, low + x.length, 0.0);
    std::fill(high, high + x.length, 0.0);
    const Index stored = static_cast<Index>(x.indptr[x.count]);
    for (Index e = 0; e < stored; ++e) {
        const Index row = static_cast<Index>(x.indices[e]);
        const double value = static_cast<double>(x.data[e]);
        low[row] = std::min(low[row], value);
        high[row] = std::max(high[row], value);
    }
}

template <class T, class I>
void pair_bounds(const Compressed<T, I>& x, const double* packed, double* upper, double* rising,
                 double* falling) {
    const int threads = threads_for(4 * static_cast<Index>(x.indptr[x.count]));
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (Index column = 0; column < x.count; ++column)
        bounds_of(x, column, packed, upper + column, rising + column, falling + column);
}

template <class T, class I>
void pair_rows(const Compressed<T, I>& x, const std::int32_t* place, Index count, const double* v,
               const PairRows<T>& rows, double* costs) {
    const auto before = [](const PairEntry<T>& a, const PairEntry<T>& b) {
        return a.position < b.position;
    };
    const int threads = threads_for(4 * static_cast<Index>(x.indptr[x.count]));
    std::vector<std::vector<double>> shares(static_cast<std::size_t>(threads));
    in_parallel(threads, [&](int part) {
        std::vector<double>& share = shares[static_cast<std::size_t>(part)];
        share.assign(static_cast<std::size_t>(count), 0.0);
        const Range range = piece(x.count, part, threads);
        for (Index row = range.begin; row < range.end; ++row) {
            const Index begin = x.begin(row), end = v[row] != 0.0 ? x.end(row) : begin;
            PairEntry<T>* entries = rows.entries + begin;
            std::int32_t size = 0;
            for (Index e = begin; e < end; ++e) {
                const std::int32_t position = place[x.indices[e]];
                if (position >= 0) entries[size++] = {position, x.data[e]};
            }
            std::sort(entries, entries + size, before);
            for (std::int32_t rank = 0; rank < size; ++rank)
                share[static_cast<std::size_t>(entries[rank].position)] += rank + 1.0;
            rows.begins[row] = begin;
            rows.sizes[row] = size;
        }
    });
    std::fill(costs, costs + count, 0.0);
    for (const std::vector<double>& share : shares)
        for (Index a = 0; a < count; ++a) costs[a] += share[static_cast<std::size_t>(a)];
}

template <class T, class I>
Index pair_sums_by_rows(const Compressed<T, I>& x, const std::int32_t* place, Index count,
                        const double* v, double* sums) {
    const int threads = threads_for(4 * static_cast<Index>(x.indptr[x.count]));
    const auto entries = static_cast<std::size_t>(count * count);
    std::vector<std::vector<double>> shares(static_cast<std::size_t>(threads));
    std::vector<Index> products(static_cast<std::size_t>(threads), 0);
    in_parallel(threads, [&](int part) {
        std::vector<double>& share = shares[static_cast<std::size_t>(part)];
        share.assign(entries, 0.0);
        std::vector<std::int32_t> places(static_cast<std::size_t>(count));
        std::vector<double> values(static_cast<std::size_t>(count));
        const Range range = piece(x.count, part, threads);
        Index formed = 0;
        for (Index row = range.begin; row < range.end; ++row) {
            if (v[row] == 0.0) continue;
            std::size_t size = 0;
            const Index end = x.end(row);
            for (Index e = x.begin(row); e < end; ++e) {
                const std::int32_t at = place[x.indices[e]];
                if (at < 0) continue;
                places[size] = at;
                values[size++] = static_cast<double>(x.data[e]);
            }
            for (std::size_t a = 0; a < size; ++a) {
                const double factor = v[row] * values[a];
                double* line = share.data() + places[a] * count;
                for (std::size_t b = a; b < size; ++b) line[places[b]] += factor * values[b];
            }
            formed += static_cast<Index>(size * (size + 1) / 2);
        }
        products[static_cast<std::size_t>(part)] = formed;
    });
    std::fill(sums, sums + entries, 0.0);
    for (const std::vector<double>& share : shares)
        for (std::size_t e = 0; e < entries; ++e) sums[e] += share[e];
    Index total = 0;
    for (const Index formed : products) total += formed;
    return total;
}

template <class T, class I>
Index pair_search(const Compressed<T, I>& x, const Index* order, Index count,
                  const PairRows<T>& rows, const double* v, const double* radii,
                  const double* upper, const double* costs, const PairLimits& limits, Range range,
                  const PairScratch& scratch, PairFound& found, PairCounts& counts) {
    // Comparisons are rounded, too.
    constexpr double kLittleLess = 1.0 - 1e-12;
    constexpr double kSparsely = 8.0;
    Line<T, I> line(x, rows, v, scratch, found, counts);
    const double threshold = limits.threshold * kLittleLess;
    for (Index a = range.begin; a < range.end; ++a) {
        if (found.size + count > found.capacity) return a;
        if (radii[a] * radii[0] < threshold) return range.end;
        if (upper[a] < threshold) continue;
        Index last = a - limits.shift;
        if (radii[a] * radii[std::max<Index>(last, 0)] < threshold) {
            const auto reaches = [&](double radius) { return radii[a] * radius >= threshold; };
            last = std::partition_point(radii, radii + last + 1, reaches) - radii - 1;
        }
        if (last < 0) continue;
        const double margin = limits.relative * radii[a] * radii[0] + limits.absolute;
        const double least = std::max(0.0, (threshold - margin) * kLittleLess);
        ++counts.columns;
        if (least > 0.0 && kSparsely * costs[a] > static_cast<double>(last))
            line.scan(order[a], a, last, limits.square, least);
        else
            line.list(order[a], a, last, limits.square, least);
    }
    return range.end;
}

#define ATOMLEARN_INSTANTIATE(T, I)                                                             \
    template void row_extremes<T, I>(const Compressed<T, I>&, double*, double*);                \
    template void pair_bounds<T, I>(const Compressed<T, I>&, const double*, double*, double*,   \
                                    double*);                                                   \
    template Index pair_sums_by_rows<T, I>(const Compressed<T, I>&, const std::int32_t*, Index, \
                                           const double*, double*);                             \
    template void pair_rows<T, I>(const Compressed<T, I>&, const std::int32_t*, Index,          \
                                  const double*, const PairRows<T>&, double*);                  \
    template Index pair_search<T, I>(const Compressed<T, I>&, const Index*, Index,              \
                                     const PairRows<T>&, const double*, const double*,          \
                                     const double*, const double*, const PairLimits&, Range,    \
                                     const PairScratch&, PairFound&, PairCounts&);
ATOMLEARN_INSTANTIATE(float, std::int32_t)
ATOMLEARN_INSTANTIATE(float, std::int64_t)
ATOMLEARN_INSTANTIATE(double, std::int32_t)
ATOMLEARN_INSTANTIATE(double, std::int64_t)

}  // namespace atomlearn
