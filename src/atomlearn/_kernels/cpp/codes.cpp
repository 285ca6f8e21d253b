// Histograms of coded columns: one addition an entry, whatever number of columns they stand for.
#include "codes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace atomlearn {
namespace {

constexpr Index kMostLevels = 256;

// Adds value(e) to the bin of each of n entries. Where there are many a level, neighbors go to two
// tables, so that equal codes do not wait for one another.
template <class C, class F>
inline void add_up(C&& code, Index n, Index levels, double* bins, F&& value) {
    std::fill(bins, bins + levels, 0.0);
    Index e = 0;
    if (n > 4 * levels) {
        double second[kMostLevels];
        std::fill(second, second + levels, 0.0);
        for (; e + 1 < n; e += 2) {
            bins[code(e)] += value(e);
            second[code(e + 1)] += value(e + 1);
        }
        for (Index level = 0; level < levels; ++level) bins[level] += second[level];
    }
    for (; e < n; ++e) bins[code(e)] += value(e);
}

template <class I>
void histogram(const Codes<I>& x, Index j, const double* v, double* bins) {
    const Index begin = x.begin(j), n = x.end(j) - begin;
    const std::uint8_t* codes = x.codes + begin;
    const auto code = [=](Index e) { return codes[e]; };
    if (!x.indptr) return add_up(code, n, x.levels(j), bins, [=](Index e) { return v[e]; });
    const I* rows = x.indices + begin;
    add_up(code, n, x.levels(j), bins, [=](Index e) { return v[rows[e]]; });
}

// Adds row(e) of each of n entries to the bin of its code, eight vectors at once: a line of memory.
template <class C, class R>
inline void add_lanes(C&& code, Index n, Index levels, double* bins, R&& row) {
    std::fill(bins, bins + levels * kCodeLanes, 0.0);
    for (Index e = 0; e < n; ++e) {
        const double* from = row(e);
        double* to = bins + static_cast<Index>(code(e)) * kCodeLanes;
        for (Index k = 0; k < kCodeLanes; ++k) to[k] += from[k];
    }
}

template <class I>
void histogram_lanes(const Codes<I>& x, Index j, const double* v, Index width, double* bins) {
    const Index begin = x.begin(j), n = x.end(j) - begin;
    const std::uint8_t* codes = x.codes + begin;
    const auto code = [=](Index e) { return codes[e]; };
    if (!x.indptr)
        return add_lanes(code, n, x.levels(j), bins, [=](Index e) { return v + e * width; });
    const I* rows = x.indices + begin;
    add_lanes(code, n, x.levels(j), bins,
              [=](Index e) { return v + static_cast<Index>(rows[e]) * width; });
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

// Writes the scores of one coded column for K vectors, `width` numbers apart, or their norms.
template <Index K>
inline void write_thermometer(const double* bins, const double* values, Index levels, Index zero,
                              Index width, bool norms, double* out) {
    if (!norms)
        return walk<K>(bins, values, levels, zero, [=](Index b, const double* sum, double gap) {
            const double root = std::sqrt(gap);
            for (Index k = 0; k < K; ++k) out[b * width + k] = root * sum[k];
        });
    double squares[K] = {};
    walk<K>(bins, values, levels, zero, [&](Index, const double* sum, double gap) {
        for (Index k = 0; k < K; ++k) squares[k] += gap * sum[k] * sum[k];
    });
    for (Index k = 0; k < K; ++k) out[k] = std::sqrt(squares[k]);
}

template <class I>
int threads_of(const Codes<I>& x, const Index* columns, Index count, Index width) {
    Index work = 0;
    for (Index p = 0; p < count; ++p)
        work += x.end(columns[p]) - x.begin(columns[p]) + x.levels(columns[p]);
    return threads_for(work * width);
}

}  // namespace

template <class I>
void code_histograms(const Codes<I>& x, const Index* columns, const Index* offsets, Index count,
                     const double* v, Index width, double* out) {
    const int threads = threads_of(x, columns, count, width);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        if (width == 1) {
            histogram(x, columns[p], v, out + offsets[p]);
            continue;
        }
        double bins[kMostLevels * kCodeLanes];
        double* to = out + offsets[p] * width;
        for (Index first = 0; first < width; first += kCodeLanes) {
            histogram_lanes(x, columns[p], v + first, width, bins);
            for (Index c = 0; c < x.levels(columns[p]); ++c)
                std::copy_n(bins + c * kCodeLanes, kCodeLanes, to + c * width + first);
        }
    }
}

template <class I>
void thermometer_scores(const Codes<I>& x, const double* values, const Index* zero,
                        const Index* columns, const Index* offsets, Index count, const double* v,
                        Index width, bool norms, double* out) {
    const int threads = threads_of(x, columns, count, width);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        const Index j = columns[p];
        double bins[kMostLevels * kCodeLanes];
        const double* own = values + x.starts[j];
        double* z = out + (norms ? p : offsets[p]) * width;
        if (width == 1) {
            histogram(x, j, v, bins);
            write_thermometer<1>(bins, own, x.levels(j), zero[j], 1, norms, z);
            continue;
        }
        for (Index first = 0; first < width; first += kCodeLanes) {
            histogram_lanes(x, j, v + first, width, bins);
            write_thermometer<kCodeLanes>(bins, own, x.levels(j), zero[j], width, norms, z + first);
        }
    }
}

template <class I>
void table_scores(const Codes<I>& x, const double* tables, const Index* begins,
                  const Index* columns, const Index* offsets, Index count, const double* v,
                  Index width, bool squared, double* out) {
    const int threads = threads_of(x, columns, count, width);
    const Index lanes = width == 1 ? 1 : kCodeLanes;
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        const Index j = columns[p], levels = x.levels(j);
        const Index size = (begins[j + 1] - begins[j]) / levels;
        double bins[kMostLevels * kCodeLanes];
        double* z = out + offsets[p] * width;
        std::fill(z, z + size * width, 0.0);
        for (Index first = 0; first < width; first += lanes) {
            if (width == 1)
                histogram(x, j, v, bins);
            else
                histogram_lanes(x, j, v + first, width, bins);
            const double* table = tables + begins[j];
            for (Index level = 0; level < levels; ++level)
                for (Index c = 0; c < size; ++c, ++table) {
                    const double value = squared ? *table * *table : *table;
                    for (Index k = 0; k < lanes; ++k)
                        z[c * width + first + k] += value * bins[level * lanes + k];
                }
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
                     const Index* second, Index count, const double* weights, Index width,
                     double* out) {
    const Index size = n_levels * n_levels;
    const int threads = threads_for(count * (n_rows + size) * width);
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (Index p = 0; p < count; ++p) {
        const std::uint8_t* a = codes + first[p] * n_rows;
        const std::uint8_t* b = codes + second[p] * n_rows;
        const auto code = [=](Index i) { return a[i] * n_levels + b[i]; };
        if (width > 1) {
            double bins[kMostLevels * kCodeLanes];
            for (Index lane = 0; lane < width; lane += kCodeLanes) {
                add_lanes(code, n_rows, size, bins,
                          [=](Index i) { return weights + i * width + lane; });
                for (Index bin = 0; bin < size; ++bin)
                    std::copy_n(bins + bin * kCodeLanes, kCodeLanes,
                                out + (p * size + bin) * width + lane);
            }
            continue;
        }
        add_up(code, n_rows, size, out + p * size, [=](Index i) { return weights[i]; });
    }
}

#define ATOMLEARN_INSTANTIATE(I)                                                                 \
    template void code_histograms<I>(const Codes<I>&, const Index*, const Index*, Index,         \
                                     const double*, Index, double*);                             \
    template void thermometer_scores<I>(const Codes<I>&, const double*, const Index*,            \
                                        const Index*, const Index*, Index, const double*, Index, \
                                        bool, double*);                                          \
    template void table_scores<I>(const Codes<I>&, const double*, const Index*, const Index*,    \
                                  const Index*, Index, const double*, Index, bool, double*);
ATOMLEARN_INSTANTIATE(std::int32_t)
ATOMLEARN_INSTANTIATE(std::int64_t)

}  // namespace atomlearn
