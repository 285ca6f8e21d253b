// Levels by one stable sort a column, codes by a search without branches.
#include "levels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace atomlearn {
namespace {

constexpr Index kMostLevels = 256;
// A sort costs about so many elementary operations an entry.
constexpr Index kSorting = 16;
// What is left over of weights that are no whole numbers is rounding.
constexpr double kNoWeight = 1e-12;

struct Entry {
    double value;
    double mass;
};

struct Ends {
    double low;
    double high;
};

// Puts the entries of column p that have a weight into `room`; returns their number.
template <class T, class I>
Index weighed(const Listed<T, I>& x, Index p, const double* weight, double total, Entry* room) {
    Index count = 0;
    double reached = 0.0;
    const auto add = [&](double value, double mass) {
        if (mass > kNoWeight * total) room[count++] = {value, mass};
    };
    for (Index e = x.begin[p]; e < x.begin[p + 1]; ++e) {
        const double mass = weight[x.rows ? static_cast<Index>(x.rows[e]) : e - x.begin[p]];
        reached += mass;
        add(static_cast<double>(x.values[e]), mass);
    }
    if (x.begin[p + 1] - x.begin[p] < x.n_rows) add(0.0, total - reached);
    return count;
}

// Returns the smallest and the largest value; NaN where there is one.
Ends ends_of(const Entry* entries, Index count) {
    double low = kInfinity, high = -kInfinity;
    for (Index e = 0; e < count; ++e) {
        if (std::isnan(entries[e].value)) return {low, entries[e].value};
        low = std::min(low, entries[e].value);
        high = std::max(high, entries[e].value);
    }
    return {low, high};
}

// Writes the distinct values, at most `most` of them; returns their number, or most + 1 for more.
Index distinct(const Entry* entries, Index count, Index most, double* values) {
    Index found = 0;
    for (Index e = 0; e < count; ++e) {
        if (e && entries[e].value == entries[e - 1].value) continue;
        if (found == most) return most + 1;
        values[found++] = entries[e].value;
    }
    return found;
}

// Writes n_bins levels of sorted entries, which lose those of the origin.
void divided(Entry* entries, Index count, double origin, const Binning& binning, double* values) {
    const double low = entries[0].value, high = entries[count - 1].value;
    if (binning.uniform) {
        for (Index bin = 0; bin < binning.n_bins; ++bin) {
            const double share = binning.shares[bin];
            values[bin] = low * (1.0 - share) + high * share;
        }
        return;
    }
    const Entry* end = std::remove_if(entries, entries + count,
                                      [=](const Entry& entry) { return entry.value == origin; });
    double total = 0.0;
    for (const Entry* entry = entries; entry < end; ++entry) total += entry->mass;
    const Entry* entry = entries;
    double reached = entry->mass;
    for (Index bin = 0; bin < binning.n_bins; ++bin) {
        const double wanted = binning.shares[bin] * (1.0 - 1e-12) * total;
        while (reached < wanted && entry + 1 < end) reached += (++entry)->mass;
        values[bin] = entry->value;
    }
}

// Puts the origin among n increasing values, each kept once; returns their number.
Index with_origin(double* values, Index n, double origin, Index* zero) {
    double* place = std::lower_bound(values, values + n, origin);
    if (place == values + n || *place != origin) {
        std::move_backward(place, values + n, values + n + 1);
        *place = origin;
        ++n;
    }
    n = std::unique(values, values + n) - values;
    *zero = std::lower_bound(values, values + n, origin) - values;
    // Adding 0 makes the zero that is not negative.
    for (Index level = 0; level < n; ++level) values[level] += 0.0;
    return n;
}

// Returns the number of levels of one column, 0 where its range is no finite number.
Index levels_of(Entry* entries, Index count, const Binning& binning, double* values, Index* zero) {
    const Ends ends = ends_of(entries, count);
    if (!std::isfinite(ends.high - ends.low)) {
        values[0] = ends.low;
        values[1] = ends.high;
        return 0;
    }
    std::stable_sort(entries, entries + count,
                     [](const Entry& a, const Entry& b) { return a.value < b.value; });
    const double origin = std::min(std::max(0.0, ends.low), ends.high);
    const Index most = binning.n_bins + 1;
    Index n = distinct(entries, count, most, values);
    if (n > most || (n == most && !std::binary_search(values, values + n, origin))) {
        divided(entries, count, origin, binning, values);
        n = binning.n_bins;
    }
    return with_origin(values, n, origin, zero);
}

// Returns the position of the first of n increasing numbers that is not below x.
inline Index first_not_below(const double* numbers, Index n, double x) {
    const double* from = numbers;
    while (n > 1) {
        const Index half = n / 2;
        from += static_cast<Index>(from[half - 1] < x) * half;
        n -= half;
    }
    return from - numbers + (n == 1 && *from < x);
}

}  // namespace

template <class T, class I>
void find_levels(const Listed<T, I>& x, const double* weight, const Binning& binning,
                 double* values, Index* counts, Index* zero) {
    const double total = std::accumulate(weight, weight + x.n_rows, 0.0);
    const int threads = threads_for(kSorting * (x.begin[x.n_columns] - x.begin[0]));
    const Index room = x.n_rows + 1;
    std::vector<Entry> entries(as_size(threads * room));
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < x.n_columns; ++p) {
        Entry* own = entries.data() + omp_get_thread_num() * room;
        const Index count = weighed(x, p, weight, total, own);
        counts[p] = levels_of(own, count, binning, values + p * (binning.n_bins + 1), zero + p);
    }
}

template <class T>
void encode_columns(const T* values, const Index* begin, Index n_columns, const double* levels,
                    const Index* starts, std::uint8_t* codes) {
    const int threads = threads_for(kSorting * (begin[n_columns] - begin[0]) / 4);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < n_columns; ++p) {
        double middles[kMostLevels];
        const double* own = levels + starts[p];
        const Index n = starts[p + 1] - starts[p] - 1;
        for (Index gap = 0; gap < n; ++gap) {
            const double middle = 0.5 * own[gap] + 0.5 * own[gap + 1];
            // Between neighboring floats there is no middle: each is its own.
            middles[gap] = middle >= own[gap + 1] || middle < own[gap] ? own[gap] : middle;
        }
        for (Index e = begin[p]; e < begin[p + 1]; ++e)
            codes[e] = static_cast<std::uint8_t>(
                first_not_below(middles, n, static_cast<double>(values[e])));
    }
}

#define ATOMLEARN_INSTANTIATE(T)                                                                \
    template void find_levels<T, std::int32_t>(const Listed<T, std::int32_t>&, const double*,   \
                                               const Binning&, double*, Index*, Index*);        \
    template void find_levels<T, std::int64_t>(const Listed<T, std::int64_t>&, const double*,   \
                                               const Binning&, double*, Index*, Index*);        \
    template void encode_columns<T>(const T*, const Index*, Index, const double*, const Index*, \
                                    std::uint8_t*);
ATOMLEARN_INSTANTIATE(float)
ATOMLEARN_INSTANTIATE(double)

}  // namespace atomlearn
