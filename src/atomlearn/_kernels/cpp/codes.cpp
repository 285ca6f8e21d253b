// Columns of small integers: sums of v over the entries of each code, one addition an entry,
// whatever number of columns they stand for.
#include <algorithm>
#include <cmath>

#include "bindings.hpp"
#include "stored.hpp"

namespace atomlearn {
namespace {

// Sums for many vectors at once have `width` vectors, 1 or a multiple of kVectorLanes: row i of V
// is v[i * width ...], and sum s of all of them is out[s * width ...].

// Codes of columns: compressed (rows `indices` between `indptr`), or, where both are null, dense
// columns of n_rows codes. Column j has codes below starts[j + 1] - starts[j].
template <class I>
struct Codes {
    const std::uint8_t* codes;
    const I* indices;
    const I* indptr;
    Index n_rows;
    const Index* starts;
    Index begin(Index j) const { return indptr ? static_cast<Index>(indptr[j]) : j * n_rows; }
    Index size(Index j) const {
        return indptr ? static_cast<Index>(indptr[j + 1] - indptr[j]) : n_rows;
    }
    Index levels(Index j) const { return starts[j + 1] - starts[j]; }
};

// The sums of K vectors for each code, side by side.
using Bins = double[kMostLevels * kVectorLanes];

// Adds row(e) of each of n entries to the bin of its code, K vectors at once. Where one vector has
// many entries a level, neighbors go to two tables: equal codes do not wait for one another.
template <Index K, class C, class R>
inline void add_up(C&& code, Index n, Index levels, double* bins, R&& row) {
    std::fill(bins, bins + levels * K, 0.0);
    Index e = 0;
    if (K == 1 && n > 4 * levels) {
        double second[kMostLevels];
        std::fill(second, second + levels, 0.0);
        for (; e + 1 < n; e += 2) {
            bins[code(e)] += *row(e);
            second[code(e + 1)] += *row(e + 1);
        }
        for (Index level = 0; level < levels; ++level) bins[level] += second[level];
    }
    for (; e < n; ++e) {
        const double* from = row(e);
        double* to = bins + static_cast<Index>(code(e)) * K;
        for (Index k = 0; k < K; ++k) to[k] += from[k];
    }
}

template <Index K, class I>
void histogram(const Codes<I>& x, Index j, const double* v, Index width, double* bins) {
    const Index begin = x.begin(j), n = x.size(j);
    const std::uint8_t* codes = x.codes + begin;
    const auto code = [=](Index e) { return codes[e]; };
    if (!x.indptr)
        return add_up<K>(code, n, x.levels(j), bins, [=](Index e) { return v + e * width; });
    const I* rows = x.indices + begin;
    add_up<K>(code, n, x.levels(j), bins,
              [=](Index e) { return v + static_cast<Index>(rows[e]) * width; });
}

// Calls body(number of vectors, the first of them) for all vectors, one or eight at a time.
template <class Body>
inline void by_lanes(Index width, Body&& body) {
    if (width == 1) return body(std::integral_constant<Index, 1>{}, Index{0});
    for (Index first = 0; first < width; first += kVectorLanes)
        body(std::integral_constant<Index, kVectorLanes>{}, first);
}

// Calls body(j, K, first vector, bins of K vectors) for each column.
template <class I, class Body>
void by_column(const Codes<I>& x, Index count, const Doubles& v, Index width, Body&& body) {
    expect(size_of(v) == x.n_rows * width, "v must have an entry for each row");
    Index work = x.starts[count];
    for (Index j = 0; j < count; ++j) work += x.size(j);
    const int threads = threads_for(work * width);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (Index j = 0; j < count; ++j)
        by_lanes(width, [&](auto lanes, Index first) {
            Bins bins;
            histogram<lanes>(x, j, v.data() + first, width, bins);
            body(j, lanes, first, bins);
        });
}

// Calls f with the coded columns, whose rows are given by compressed arrays or are all of them.
template <class F>
void by_codes(const Bytes& codes, const std::optional<Vector>& indices,
              const std::optional<Vector>& indptr, Index n_rows, const Positions& starts, F&& f) {
    if (!indices)
        return f(Codes<std::int32_t>{codes.data(), nullptr, nullptr, n_rows, starts.data()});
    by_index(*indices, [&]<class I>(const I* rows) {
        f(Codes<I>{codes.data(), rows, static_cast<const I*>(indptr->data()), n_rows,
                   starts.data()});
    });
}

// The sum of v over the entries with each code.
void code_histograms(const Bytes& codes, const std::optional<Vector>& indices,
                     const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                     const Doubles& v, Index width, const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        by_column(x, size_of(starts) - 1, v, width,
                  [&](Index j, auto lanes, Index first, const double* bins) {
                      double* to = out.data() + x.starts[j] * width + first;
                      for (Index c = 0; c < x.levels(j); ++c)
                          std::copy_n(bins + c * lanes, Index{lanes}, to + c * width);
                  });
    });
}

// Calls f(column, scores / sqrt(gap), gap) for the thermometer columns of one coded column, whose
// bins are those of K vectors side by side.
template <Index K, class F>
inline void walk(const double* bins, const double* values, Index levels, Index zero, F&& f) {
    double sum[K] = {};
    for (Index b = 0; b < zero; ++b) {
        for (Index k = 0; k < K; ++k) sum[k] -= bins[b * K + k];
        f(b, sum, values[b + 1] - values[b]);
    }
    std::fill(sum, sum + K, 0.0);
    for (Index b = levels - 2; b >= zero; --b) {
        for (Index k = 0; k < K; ++k) sum[k] += bins[(b + 1) * K + k];
        f(b, sum, values[b + 1] - values[b]);
    }
}

// Thermometer columns between neighboring levels: +sqrt(gap) for codes above one that is not
// below zero[j], -sqrt(gap) for codes up to one that is.
void thermometer_scores(const Bytes& codes, const std::optional<Vector>& indices,
                        const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                        const Doubles& values, const Positions& zero, const Doubles& v, Index width,
                        const OutDoubles& out) {
    const Index count = size_of(starts) - 1;
    expect(size_of(zero) == count && size_of(values) == starts.data()[count],
           "values must hold the levels, and zero one code of each column");
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        by_column(x, count, v, width, [&](Index j, auto lanes, Index first, const double* bins) {
            constexpr Index K = lanes;
            // A column has one score less than levels.
            double* to = out.data() + (x.starts[j] - j) * width + first;
            walk<K>(bins, values.data() + x.starts[j], x.levels(j), zero.data()[j],
                    [&](Index b, const double* sum, double gap) {
                        const double root = std::sqrt(gap);
                        for (Index k = 0; k < K; ++k) to[b * width + k] = root * sum[k];
                    });
        });
    });
}

// Scores of columns that are known at each code: column c of coded column j is
// tables[begins[j] + code * size + c], size = (begins[j + 1] - begins[j]) / levels of j; those of
// coded column j begin at offsets[j].
void table_scores(const Bytes& codes, const std::optional<Vector>& indices,
                  const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                  const Doubles& tables, const Positions& begins, const Positions& offsets,
                  const Doubles& v, Index width, const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        const auto write = [&](Index j, auto lanes, Index first, const double* bins) {
            const Index size = offsets.data()[j + 1] - offsets.data()[j];
            const double* table = tables.data() + begins.data()[j];
            double* z = out.data() + offsets.data()[j] * width + first;
            for (Index c = 0; c < size; ++c) std::fill_n(z + c * width, Index{lanes}, 0.0);
            for (Index level = 0; level < x.levels(j); ++level)
                for (Index c = 0; c < size; ++c, ++table)
                    for (Index k = 0; k < lanes; ++k)
                        z[c * width + k] += *table * bins[level * lanes + k];
        };
        by_column(x, size_of(starts) - 1, v, width, write);
    });
}

// The sum of weights over the rows with codes a and b, for pairs (first[p], second[p]) of columns
// of codes below n_levels <= 16: n_levels * n_levels sums from out[p * n_levels * n_levels] on.
void pair_histograms(const Bytes& codes, Index n_levels, const Positions& first,
                     const Positions& second, const Doubles& weights, Index width,
                     const OutDoubles& out) {
    const Index size = n_levels * n_levels, n_rows = size_of(weights) / width;
    const Index count = size_of(first), n_columns = size_of(codes) / std::max<Index>(n_rows, 1);
    expect(size_of(second) == count, "first and second must pair up");
    if (n_rows) expect_within(first, n_columns), expect_within(second, n_columns);
    const int threads = threads_for(count * (n_rows + size) * width);
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        const std::uint8_t* a = codes.data() + first.data()[p] * n_rows;
        const std::uint8_t* b = codes.data() + second.data()[p] * n_rows;
        by_lanes(width, [&](auto lanes, Index lane) {
            Bins bins;
            add_up<lanes>([=](Index i) { return a[i] * n_levels + b[i]; }, n_rows, size, bins,
                          [&](Index i) { return weights.data() + i * width + lane; });
            for (Index bin = 0; bin < size; ++bin)
                std::copy_n(bins + bin * lanes, Index{lanes},
                            out.data() + (p * size + bin) * width + lane);
        });
    }
}

}  // namespace

void bind_codes(nb::module_& m) {
    define(m, "code_histograms", &code_histograms);
    define(m, "thermometer_scores", &thermometer_scores);
    define(m, "table_scores", &table_scores);
    define(m, "pair_histograms", &pair_histograms);
}

}  // namespace atomlearn
