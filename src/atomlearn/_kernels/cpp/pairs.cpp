// The exact search of the largest sums_k v_k x_ki x_kj over pairs of columns: bounds that exclude
// most of them, and the sums of the others row by row.
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <vector>

#include "compressed.hpp"

namespace atomlearn {
namespace {

using Integers = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
    // A bound on squares too small for a double; those that are too large give infinity.
    *rising = std::sqrt(up) + 1e-100;
    *falling = std::sqrt(down) + 1e-100;
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

// X by rows, its columns under new numbers: increasing positions in each row. Entry and position
// lie side by side, because rows are visited in jumps.
template <class T>
struct PairEntry {
    std::int32_t position;
    T value;
};
template <class T>
struct PairRows {
    PairEntry<T>* entries;
    Index* begins;        // (n_rows,)
    std::int32_t* sizes;  // (n_rows,)
};
template <class T>
PairRows<T> rows_in(const OutBytes& entries, const OutPositions& begins, const Integers& sizes) {
    return {reinterpret_cast<PairEntry<T>*>(entries.data()), begins.data(), sizes.data()};
}

// Of one entry a position, zero between two lines; as long as the lines need.
struct PairScratch {
    std::vector<double> sums;
    std::vector<std::int32_t> touched;
    std::vector<std::uint8_t> seen;
    void reach(std::size_t size) {
        if (sums.size() >= size) return;
        sums.resize(size);
        touched.resize(size);
        seen.resize(size);
    }
};

struct PairFound {
    std::int32_t* first;
    std::int32_t* second;
    double* sums;
    Index size = 0;
    Index products = 0;  // multiplications
};

// One position a of the search: its sums with all b <= last.
template <class T, class I>
class Line {
  public:
    Line(const Compressed<T, I>& x, const PairRows<T>& rows, const double* v, PairScratch& scratch,
         PairFound& found)
        : x_(x), rows_(rows), v_(v), scratch_(scratch), found_(found) {}

    // Every place up to `last` is looked at afterwards.
    void scan(Index column, Index a, Index last, double square, double least) {
        add<false>(column, last);
        if (last == a) scratch_.sums[a] *= square;
        for (Index start = 0; start <= last; start += kRun) {
            const Index size = std::min(kRun, last + 1 - start);
            double* run = scratch_.sums.data() + start;
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
    }

  private:
    template <bool Listed>
    Index add(Index column, Index last) {
        const Index begin = x_.begin(column), end = x_.end(column);
        double* sums = scratch_.sums.data();
        Index size = 0, products = 0;
        for (Index e = begin; e < end; ++e) {
            // Rows lie far apart: where the next ones begin is asked for in time.
            if (e + 2 * kAhead < end) __builtin_prefetch(rows_.begins + x_.indices[e + 2 * kAhead]);
            if (e + kAhead < end)
                __builtin_prefetch(rows_.entries + rows_.begins[x_.indices[e + kAhead]]);
            const Index row = static_cast<Index>(x_.indices[e]);
            const double factor = v_[row] * static_cast<double>(x_.data[e]);
            if (factor == 0.0) continue;
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
        found_.products += products;
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
    PairScratch& scratch_;
    PairFound& found_;
};

// For each column i: rising = sqrt(sum of v_k x_ki^2 over v_k > 0), falling the same over v_k < 0,
// and upper >= |sum_k v_k x_ki x_kj| for every j. `packed` holds v_k, v_k high_k, v_k low_k.
void pair_bounds(const Vector& data, const Vector& indices, const Vector& indptr,
                 const std::optional<Positions>& columns, const DoubleMatrix& packed,
                 const OutDoubles& upper, const OutDoubles& rising, const OutDoubles& falling) {
    by_compressed(data, indices, indptr, size_of(packed), columns, [&](const auto& x) {
        const int threads = threads_for(4 * size_of(indices));
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
        for (Index column = 0; column < x.count; ++column)
            bounds_of(x, column, packed.data(), upper.data() + column, rising.data() + column,
                      falling.data() + column);
    });
}

// Bytes of an entry of PairRows.
Index pair_entry_size(bool single) {
    return static_cast<Index>(single ? sizeof(PairEntry<float>) : sizeof(PairEntry<double>));
}

// Fills the rows from x in CSR with the columns whose place[column] >= 0 is their position, and
// costs[a] with the entries that the pairs (a, b), b <= a, read.
void pair_rows(const Vector& data, const Vector& indices, const Vector& indptr,
               const Integers& place, const OutBytes& entries_of_rows, const OutPositions& begins,
               const Integers& sizes, const OutDoubles& costs) {
    const Index count = size_of(costs);
    by_compressed(data, indices, indptr, size_of(place), std::nullopt, [&](const auto& x) {
        using T = std::remove_cvref_t<decltype(*x.data)>;
        const PairRows<T> rows = rows_in<T>(entries_of_rows, begins, sizes);
        const int threads = threads_for(4 * size_of(indices));
        std::vector<std::vector<double>> shares(as_size(threads));
        in_parallel(threads, [&](int part) {
            std::vector<double>& share = shares[as_size(part)];
            share.assign(as_size(count), 0.0);
            const Range range = piece(x.count, part, threads);
            for (Index row = range.begin; row < range.end; ++row) {
                const Index begin = x.begin(row), end = x.end(row);
                PairEntry<T>* entries = rows.entries + begin;
                std::int32_t size = 0;
                for (Index e = begin; e < end; ++e) {
                    const std::int32_t position = place.data()[x.indices[e]];
                    if (position >= 0) entries[size++] = {position, x.data[e]};
                }
                std::sort(entries, entries + size,
                          [](const auto& a, const auto& b) { return a.position < b.position; });
                for (std::int32_t rank = 0; rank < size; ++rank)
                    share[as_size(entries[rank].position)] += rank + 1.0;
                rows.begins[row] = begin;
                rows.sizes[row] = size;
            }
        });
        std::fill_n(costs.data(), count, 0.0);
        for (const std::vector<double>& share : shares)
            for (Index a = 0; a < count; ++a) costs.data()[a] += share[as_size(a)];
    });
}

// Searches the pairs of positions a from `begin` to `end`; returns the first position that is not
// done, because what is found is nearly full, how many were found, and the multiplications. A pair
// is summed where reaches_a reaches_b >= enough and upper_a >= enough; `peaks` are the largest of
// the reaches from each position on. A sum matters where its magnitude, `square` times that for
// b = a, reaches least_sum - relative sizes_a - absolute. Pairs (a, b) have b <= a - shift.
std::tuple<Index, Index, Index> pair_search(
    const Vector& data, const Vector& indices, const Vector& indptr, const OutBytes& entries,
    const OutPositions& begins, const Integers& sizes_of_rows, const Positions& order,
    const Doubles& v, const Doubles& reaches_of, const Doubles& peaks_of, const Doubles& upper,
    const Doubles& sizes, const Doubles& costs, Index begin, Index end, double enough_sum,
    double least_sum, double relative, double absolute, double square, Index shift,
    const Integers& first, const Integers& second, const OutDoubles& found_sums) {
    PairScratch scratch;
    const double *reaches = reaches_of.data(), *peaks = peaks_of.data();
    constexpr double kSparsely = 8.0;
    // Comparisons are rounded, too.
    const double enough = enough_sum * (1.0 - kTiny);
    PairFound found{first.data(), second.data(), found_sums.data()};
    Index a = begin;
    by_compressed(
        data, indices, indptr, size_of(v), std::nullopt,
        [&]<class T, class I>(const Compressed<T, I>& x) {
            const PairRows<T> rows = rows_in<T>(entries, begins, sizes_of_rows);
            Line<T, I> line(x, rows, v.data(), scratch, found);
            for (; a < end; ++a) {
                if (found.size + size_of(order) > size_of(found_sums)) return;
                if (peaks[a] * peaks[0] < enough) break;
                if (reaches[a] * peaks[0] < enough || upper.data()[a] < enough) continue;
                const auto matters = [&](double peak) { return reaches[a] * peak >= enough; };
                const Index count = a - shift + 1;
                const Index last = std::partition_point(peaks, peaks + count, matters) - peaks - 1;
                if (last < 0) continue;
                scratch.reach(as_size(last + 1));
                const double margin = relative * sizes.data()[a] + absolute;
                const double least = std::max(0.0, (least_sum - margin) * (1.0 - kTiny));
                if (least > 0.0 && kSparsely * costs.data()[a] > static_cast<double>(last))
                    line.scan(order.data()[a], a, last, square, least);
                else
                    line.list(order.data()[a], a, last, square, least);
            }
            a = end;
        });
    return {a, found.size, found.products};
}

}  // namespace

void bind_pairs(nb::module_& m) {
    define(m, "pair_bounds", &pair_bounds);
    define(m, "pair_entry_size", &pair_entry_size);
    define(m, "pair_rows", &pair_rows);
    define(m, "pair_search", &pair_search);
}

}  // namespace atomlearn
