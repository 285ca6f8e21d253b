// Products of factors at the positions of a compressed matrix, and of that matrix with a factor.
#include <vector>

#include "kernels.hpp"

namespace atomlearn {
namespace {

// Rows cut where their positions are even.
template <class I>
std::vector<Index> row_cuts(const I* indptr, Index n_rows, Index parts) {
    std::vector<Index> cuts(static_cast<std::size_t>(parts + 1), n_rows);
    cuts[0] = 0;
    for (Index part = 1; part < parts; ++part) {
        const I target = static_cast<I>(static_cast<Index>(indptr[n_rows]) / parts * part);
        cuts[part] = std::max<Index>(cuts[part - 1],
                                     std::lower_bound(indptr, indptr + n_rows, target) - indptr);
    }
    return cuts;
}

template <class I, class Body>
void by_rows(const I* indptr, Index n_rows, Index width, Body&& body) {
    const int threads = threads_for(static_cast<Index>(indptr[n_rows]) * width + n_rows);
    if (threads == 1) return body(Range{0, n_rows});
    const Index parts = 8 * threads;
    const std::vector<Index> cuts = row_cuts(indptr, n_rows, parts);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (Index part = 0; part < parts; ++part) body(Range{cuts[part], cuts[part + 1]});
}

template <class I>
ATOMLEARN_CLONES void products_of(const I* indices, const I* indptr, Range rows, Index width,
                                  const double* left, const double* right, double* out) {
    for (Index row = rows.begin; row < rows.end; ++row) {
        const double* a = left + row * width;
        for (Index e = indptr[row]; e < static_cast<Index>(indptr[row + 1]); ++e) {
            const double* b = right + static_cast<Index>(indices[e]) * width;
            double sum = 0.0;
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < width; ++k) sum += a[k] * b[k];
            out[e] = sum;
        }
    }
}

template <class I>
ATOMLEARN_CLONES void rows_of(const double* data, const I* indices, const I* indptr, Range rows,
                              Index width, const double* right, double* out) {
    for (Index row = rows.begin; row < rows.end; ++row) {
        double* sums = out + row * width;
        std::fill(sums, sums + width, 0.0);
        for (Index e = indptr[row]; e < static_cast<Index>(indptr[row + 1]); ++e) {
            const double factor = data[e];
            const double* b = right + static_cast<Index>(indices[e]) * width;
#pragma omp simd
            for (Index k = 0; k < width; ++k) sums[k] += factor * b[k];
        }
    }
}

}  // namespace

template <class I>
void sampled_products(const I* indices, const I* indptr, Index n_rows, Index width,
                      const double* left, const double* right, double* out) {
    by_rows(indptr, n_rows, width,
            [&](Range rows) { products_of(indices, indptr, rows, width, left, right, out); });
}

template <class I>
void sparse_times_rows(const double* data, const I* indices, const I* indptr, Index n_rows,
                       Index width, const double* right, double* out) {
    by_rows(indptr, n_rows, width,
            [&](Range rows) { rows_of(data, indices, indptr, rows, width, right, out); });
}

#define ATOMLEARN_INSTANTIATE(I)                                                        \
    template void sampled_products<I>(const I*, const I*, Index, Index, const double*,  \
                                      const double*, double*);                          \
    template void sparse_times_rows<I>(const double*, const I*, const I*, Index, Index, \
                                       const double*, double*);
ATOMLEARN_INSTANTIATE(std::int32_t)
ATOMLEARN_INSTANTIATE(std::int64_t)

}  // namespace atomlearn
