// Histograms of coded columns: one addition an entry, whatever number of columns they stand for.
#include "codes.hpp"

#include <cmath>
#include <vector>

namespace atomlearn {
namespace {

constexpr Index kMostLevels = 256;

// Adds value(e) to the bin of each of n entries. Where there are many a level, neighbors go to two
// tables, so that equal codes do not wait for one another.
template <class F>
inline void add_up(const std::uint8_t* codes, Index n, Index levels, double* bins, F&& value) {
    std::fill(bins, bins + levels, 0.0);
    Index e = 0;
    if (n > 4 * levels) {
        double second[kMostLevels];
        std::fill(second, second + levels, 0.0);
        for (; e + 1 < n; e += 2) {
            bins[codes[e]] += value(e);
            second[codes[e + 1]] += value(e + 1);
        }
        for (Index level = 0; level < levels; ++level) bins[level] += second[level];
    }
    for (; e < n; ++e) bins[codes[e]] += value(e);
}

template <class I>
void histogram(const Codes<I>& x, Index j, const double* v, double* bins) {
    const Index begin = x.begin(j), n = x.end(j) - begin;
    const std::uint8_t* codes = x.codes + begin;
    if (!x.indptr) return add_up(codes, n, x.levels(j), bins, [=](Index e) { return v[e]; });
    const I* rows = x.indices + begin;
    add_up(codes, n, x.levels(j), bins, [=](Index e) { return v[rows[e]]; });
}

// Calls f(column, score / sqrt(gap), gap) for the thermometer columns of one coded column.
template <class F>
inline void walk(const double* bins, const double* values, Index levels, Index zero, F&& f) {
    double sum = 0.0;
    for (Index b = 0; b < zero; ++b) {
        sum -= bins[b];
        f(b, sum, values[b + 1] - values[b]);
    }
    sum = 0.0;
    for (Index b = levels - 2; b >= zero; --b) {
        sum += bins[b + 1];
        f(b, sum, values[b + 1] - values[b]);
    }
}

template <class I>
int threads_of(const Codes<I>& x, const Index* columns, Index count) {
    Index work = 0;
    for (Index p = 0; p < count; ++p)
        work += x.end(columns[p]) - x.begin(columns[p]) + x.levels(columns[p]);
    return threads_for(work);
}

}  // namespace

template <class I>
void code_histograms(const Codes<I>& x, const Index* columns, const Index* offsets, Index count,
                     const double* v, double* out) {
    const int threads = threads_of(x, columns, count);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) histogram(x, columns[p], v, out + offsets[p]);
}

template <class I>
void thermometer_scores(const Codes<I>& x, const double* values, const Index* zero,
                        const Index* columns, const Index* offsets, Index count, const double* v,
                        bool norms, double* out) {
    const int threads = threads_of(x, columns, count);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        const Index j = columns[p];
        double bins[kMostLevels];
        histogram(x, j, v, bins);
        if (norms) {
            double square = 0.0;
            walk(bins, values + x.starts[j], x.levels(j), zero[j],
                 [&](Index, double sum, double gap) { square += gap * sum * sum; });
            out[p] = std::sqrt(square);
        } else {
            double* z = out + offsets[p];
            walk(bins, values + x.starts[j], x.levels(j), zero[j],
                 [&](Index b, double sum, double gap) { z[b] = std::sqrt(gap) * sum; });
        }
    }
}

void joint_histogram(const std::uint8_t* first, const std::uint8_t* second, Index n_rows,
                     Index n_first, Index n_second, const double* weights, double* out) {
    std::fill(out, out + n_first * n_second, 0.0);
    for (Index i = 0; i < n_rows; ++i)
        out[static_cast<Index>(first[i]) * n_second + second[i]] += weights[i];
}

void pair_histograms(const std::uint8_t* codes, Index n_rows, Index n_levels, const Index* first,
                     const Index* second, Index count, const double* weights, double* out) {
    const Index size = n_levels * n_levels;
    const int threads = threads_for(count * (n_rows + size));
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        const std::uint8_t* a = codes + first[p] * n_rows;
        const std::uint8_t* b = codes + second[p] * n_rows;
        // Neighbors go to two tables, so that equal codes do not wait for one another.
        double even[kMostLevels] = {}, odd[kMostLevels] = {};
        Index i = 0;
        for (; i + 1 < n_rows; i += 2) {
            even[a[i] * n_levels + b[i]] += weights[i];
            odd[a[i + 1] * n_levels + b[i + 1]] += weights[i + 1];
        }
        if (i < n_rows) even[a[i] * n_levels + b[i]] += weights[i];
        for (Index bin = 0; bin < size; ++bin) out[p * size + bin] = even[bin] + odd[bin];
    }
}

#define ATOMLEARN_INSTANTIATE(I)                                                                \
    template void code_histograms<I>(const Codes<I>&, const Index*, const Index*, Index,        \
                                     const double*, double*);                                   \
    template void thermometer_scores<I>(const Codes<I>&, const double*, const Index*,           \
                                        const Index*, const Index*, Index, const double*, bool, \
                                        double*);
ATOMLEARN_INSTANTIATE(std::int32_t)
ATOMLEARN_INSTANTIATE(std::int64_t)

}  // namespace atomlearn
