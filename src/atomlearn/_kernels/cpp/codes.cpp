// Columns of small integers: sums of v over the entries of each code, one addition an entry,
// whatever number of columns they stand for.
#include <algorithm>
#include <cmath>
#include <numeric>

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

// The most columns of an input: splines of degree 10 between 255 knots.
constexpr Index kMostDegree = 10;

// B-splines of one input: the positions of their knots among the levels x, the first and the last
// level included. There are n_knots + degree - 1 of them, none where there is one knot.
struct Splines {
    const double* x;
    const Index* knots;
    Index n_knots;
    Index degree;
    Index zero;  // the level at which all columns are 0
};

// The B-splines that are not 0 between two neighboring knots, at eight values: those of columns i,
// ..., i + degree between knots i and i + 1, by the recursion of Cox and de Boor.
struct Between {
    double values[kMostDegree + 1][kVectorLanes];
    double shares[kMostDegree + 1][kMostDegree];  // 1 / the distance of the knots of each step
    const double* knots;                          // knots[0] <= x <= knots[1]

    ATOMLEARN_INLINE void set(const double* at, Index degree) {
        knots = at;
        for (Index order = 1; order <= degree; ++order)
            for (Index r = 0; r < order; ++r)
                shares[order][r] = 1.0 / (knots[r + 1] - knots[r + 1 - order]);
    }

    // Numbers above the interval count as its end.
    ATOMLEARN_INLINE void evaluate(const double* at, Index degree) {
        double x[kVectorLanes];
        const double end = knots[1];
#pragma omp simd
        for (Index lane = 0; lane < kVectorLanes; ++lane) {
            x[lane] = std::min(at[lane], end);
            values[0][lane] = 1.0;
        }
        for (Index order = 1; order <= degree; ++order) {
            double carried[kVectorLanes] = {};
            for (Index r = 0; r < order; ++r)
#pragma omp simd
                for (Index lane = 0; lane < kVectorLanes; ++lane) {
                    const double ratio = values[r][lane] * shares[order][r];
                    values[r][lane] = carried[lane] + (knots[r + 1] - x[lane]) * ratio;
                    carried[lane] = (x[lane] - knots[r + 1 - order]) * ratio;
                }
            std::copy_n(carried, kVectorLanes, values[order]);
        }
    }
};

// z[c * width + k] = sum over the levels of bin k times (B_c - B_c at the origin)^power, for K
// vectors side by side in the bins. The usual Degree is known when this is compiled; 0 is any.
template <Index K, bool Squared, Index Degree>
ATOMLEARN_INLINE void add_splines(const Splines& input, const double* bins, double* z,
                                  Index width) {
    const Index degree = Degree ? Degree : input.degree;
    const Index last = input.n_knots - 1, levels = input.knots[last] + 1;
    if (last == 0) return;
    double padded[kMostLevels + 2 * kMostDegree];
    for (Index t = -degree; t <= last + degree; ++t)
        padded[t + degree] = input.x[input.knots[std::clamp<Index>(t, 0, last)]];
    // Eight levels are read at a time, also where fewer are left.
    double total[K] = {}, origin[kMostLevels + kMostDegree] = {},
           x[kMostLevels + kVectorLanes] = {};
    std::copy_n(input.x, levels, x);
    std::fill_n(x + levels, kVectorLanes, x[levels - 1]);
    for (Index level = 0; level < levels; ++level)
        for (Index k = 0; k < K; ++k) total[k] += bins[level * K + k];
    Between between;
    const Index at_zero =
        std::upper_bound(input.knots + 1, input.knots + last, input.zero) - input.knots - 1;
    between.set(padded + degree + at_zero, degree);
    between.evaluate(x + input.zero, degree);
    for (Index r = 0; r <= degree; ++r) origin[at_zero + r] = between.values[r][0];
    for (Index c = 0; c < last + degree; ++c)
        for (Index k = 0; k < K; ++k)
            z[c * width + k] = total[k] * (Squared ? origin[c] * origin[c] : -origin[c]);
    for (Index i = 0; i < last; ++i) {
        between.set(padded + degree + i, degree);
        double sums[kMostDegree + 1][kVectorLanes] = {};
        const Index end = i + 1 == last ? levels : input.knots[i + 1];
        for (Index level = input.knots[i]; level < end; level += kVectorLanes) {
            const Index count = std::min(kVectorLanes, end - level);
            between.evaluate(x + level, degree);
            double own[kVectorLanes];
            if constexpr (K == 1) {
#pragma omp simd
                for (Index lane = 0; lane < kVectorLanes; ++lane)
                    own[lane] = lane < count ? bins[level + lane] : 0.0;
            }
            for (Index r = 0; r <= degree; ++r) {
                const double twice = 2.0 * origin[i + r];
                double* values = between.values[r];
                if constexpr (Squared)
                    for (Index lane = 0; lane < kVectorLanes; ++lane)
                        values[lane] *= values[lane] - twice;
                if constexpr (K == 1) {
#pragma omp simd
                    for (Index lane = 0; lane < kVectorLanes; ++lane)
                        sums[r][lane] += values[lane] * own[lane];
                } else {
                    for (Index lane = 0; lane < count; ++lane)
                        for (Index k = 0; k < K; ++k)
                            sums[r][k] += values[lane] * bins[(level + lane) * K + k];
                }
            }
        }
        for (Index r = 0; r <= degree; ++r)
            for (Index lane = 0; lane < kVectorLanes; ++lane)
                z[(i + r) * width + (K == 1 ? 0 : lane)] += sums[r][lane];
    }
}

// Scores of columns that are B-splines of the coded columns, 0 at their origins: the knots of coded
// column j are its levels knots[knot_starts[j]] .. knots[knot_starts[j + 1] - 1], and its columns
// begin at offsets[j]. A column has at most `degree`, and one less than its number of levels.
void spline_scores(const Bytes& codes, const std::optional<Vector>& indices,
                   const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                   const Doubles& values, const Positions& zero, const Positions& knots,
                   const Positions& knot_starts, const Positions& offsets, Index degree,
                   bool squared, const Doubles& v, Index width, const OutDoubles& out) {
    const Index count = size_of(starts) - 1;
    expect(size_of(zero) == count && size_of(values) == starts.data()[count] &&
               size_of(knot_starts) == count + 1 && size_of(offsets) == count + 1 &&
               size_of(knots) == knot_starts.data()[count] && degree <= kMostDegree,
           "values must hold the levels, zero one code and knots the levels of each column");
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        by_column(x, count, v, width, [&](Index j, auto lanes, Index first, const double* bins) {
            const Index begin = knot_starts.data()[j];
            const Splines input{values.data() + x.starts[j], knots.data() + begin,
                                knot_starts.data()[j + 1] - begin,
                                std::min(degree, x.levels(j) - 1), zero.data()[j]};
            double* z = out.data() + offsets.data()[j] * width + first;
            if (squared)
                vectorized<add_splines<lanes, true, 0>>(input, bins, z, width);
            else if (input.degree == 3)
                vectorized<add_splines<lanes, false, 3>>(input, bins, z, width);
            else
                vectorized<add_splines<lanes, false, 0>>(input, bins, z, width);
        });
    });
}

// Writes the levels of column j at which its knots are from knots[j * room] on, each once, and how
// many they are into counts[j]: the first level, those at the shares `quantiles` of the weight, and
// the last. Entries that are not stored are at the origin, zero[j]; room = size of quantiles + 2.
void spline_knots(const Bytes& codes, const std::optional<Vector>& indices,
                  const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                  const Positions& zero, const Doubles& quantiles, const OutPositions& knots,
                  const OutPositions& counts, const Doubles& weight) {
    const Index count = size_of(starts) - 1, inner = size_of(quantiles);
    expect(
        size_of(zero) == count && size_of(counts) == count && size_of(knots) == count * (inner + 2),
        "zero and counts must have an entry for each column");
    const double all = std::accumulate(weight.data(), weight.data() + size_of(weight), 0.0);
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        by_column(x, count, weight, 1, [&](Index j, auto, Index, double* bins) {
            const Index levels = x.levels(j);
            const double stored = std::accumulate(bins, bins + levels, 0.0);
            if (x.indptr) bins[zero.data()[j]] += std::max(all - stored, 0.0);
            Index* to = knots.data() + j * (inner + 2);
            Index n = 0, level = 0;
            to[n++] = 0;
            double reached = bins[0] / all;
            for (Index q = 0; q < inner; ++q) {
                while (reached < quantiles.data()[q] && level + 1 < levels)
                    reached += bins[++level] / all;
                if (to[n - 1] != level) to[n++] = level;
            }
            if (to[n - 1] != levels - 1) to[n++] = levels - 1;
            counts.data()[j] = n;
        });
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
    define(m, "spline_scores", &spline_scores);
    define(m, "spline_knots", &spline_knots);
    define(m, "pair_histograms", &pair_histograms);
}

}  // namespace atomlearn
