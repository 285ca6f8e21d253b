// The levels that columns are rounded to, by one stable sort a column, and the codes of their
// entries, by a search without branches.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "bindings.hpp"
#include "stored.hpp"

namespace atomlearn {
namespace {

// A sort costs about so many elementary operations an entry.
// What is left over of weights that are no whole numbers is rounding.

// Columns one after the other: entries begin[p] .. begin[p + 1] - 1 are those of column p, in the
// rows `rows`, or in all of n_rows rows where that is null. Entries that are not there are 0.
template <class T, class I>
struct Listed {
    const T* values;
    const I* rows;
    const Index* begin;
    Index n_rows;
};

// How columns with more than n_bins + 1 distinct values are divided: at these shares, increasing
// from 0 to 1, of the weight of the values other than the origin, or (`uniform`) of their range.
struct Binning {
    const double* shares;
    Index n_bins;
    bool uniform;
};

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
        if (mass > kTiny * total) room[count++] = {value, mass};
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

// Writes the levels of column p from levels[p * (n_bins + 1)] on, how many they are into counts[p],
// and the position of the origin among them into zero[p]. Rows count `weight` times. A column whose
// range is no finite number has a count of 0, and its ends as the first two values.
void find_levels(const Vector& values, const std::optional<Vector>& rows, const Positions& begin,
                 const Doubles& weight, const Doubles& shares, bool uniform,
                 const OutDoubles& levels, const OutPositions& counts, const OutPositions& zero) {
    const Binning binning{shares.data(), size_of(shares), uniform};
    const Index n_columns = size_of(begin) - 1, n_rows = size_of(weight), room = n_rows + 1;
    const Index* ends = begin.data();
    const double* factors = weight.data();
    const double total = std::accumulate(factors, factors + n_rows, 0.0);
    const int threads = threads_for(kCostly * (ends[n_columns] - ends[0]));
    std::vector<Entry> entries(as_size(threads * room));
    by_float(values, [&]<class T>(const T* data) {
        const auto find = [&]<class I>(const I* places) {
            const Listed<T, I> x{data, places, ends, n_rows};
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
            for (Index p = 0; p < n_columns; ++p) {
                Entry* own = entries.data() + omp_get_thread_num() * room;
                const Index count = weighed(x, p, factors, total, own);
                counts.data()[p] = levels_of(
                    own, count, binning, levels.data() + p * (binning.n_bins + 1), zero.data() + p);
            }
        };
        if (!rows) return find(static_cast<const std::int32_t*>(nullptr));
        by_index(*rows, find);
    });
}

// codes[e] = position of the level nearest to entry e, of two the lower one. Those of column p are
// levels[starts[p]] .. levels[starts[p + 1] - 1], at most 256.
void encode_columns(const Vector& values, const Positions& begin, const Doubles& levels,
                    const Positions& starts, const OutBytes& codes) {
    const Index n_columns = size_of(begin) - 1;
    const Index *ends = begin.data(), *first = starts.data();
    const int threads = threads_for(kCostly * (ends[n_columns] - ends[0]) / 4);
    by_float(values, [&](const auto* data) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
        for (Index p = 0; p < n_columns; ++p) {
            double middles[kMostLevels];
            const double* own = levels.data() + first[p];
            const Index n = first[p + 1] - first[p] - 1;
            for (Index gap = 0; gap < n; ++gap) {
                const double middle = 0.5 * own[gap] + 0.5 * own[gap + 1];
                // Between neighboring floats there is no middle: each is its own.
                middles[gap] = middle >= own[gap + 1] || middle < own[gap] ? own[gap] : middle;
            }
            for (Index e = ends[p]; e < ends[p + 1]; ++e)
                codes.data()[e] = static_cast<std::uint8_t>(
                    first_not_below(middles, n, static_cast<double>(data[e])));
        }
    });
}

}  // namespace

void bind_levels(nb::module_& m) {
    define(m, "find_levels", &find_levels);
    define(m, "encode_columns", &encode_columns);
}

}  // namespace atomlearn
