// Products of factors at the positions of a compressed matrix, of that matrix with a factor, and
// the ridge regressions of its rows on a factor.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "blas.hpp"
#include "compressed.hpp"

namespace atomlearn {
namespace {

template <class I>
ATOMLEARN_INLINE void products_of(const I* indices, const I* indptr, Range rows, Index width,
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
ATOMLEARN_INLINE void rows_of(const double* data, const I* indices, const I* indptr, Range rows,
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

// Rows of the factor, copied to padded ones, so many at a time: sums are loaded and stored once
// for all of them.
constexpr Index kRowsAtOnce = 4;

// For each row i of stored positions (i, j): one step of Newton for the row a of the result,
// a - (sum h b b' + amount)^-1 (sum g b + amount a), over its positions e with b = factor_j, slope
// g and curvature h of sample order[e] (e itself where there is no order). amount > 0, h >= 0; rows
// whose system has no Cholesky factor (numbers that are not finite) stay.
template <class I>
struct FactorRidge {
    const I *indices, *indptr, *order;
    Index width;
    const double *slope, *curvature, *factor;
    double amount;
};

struct RidgeRoom {
    explicit RidgeRoom(Index width)
        : stride((width + kVectorLanes - 1) / kVectorLanes * kVectorLanes),
          memory(static_cast<std::size_t>(stride * (width + kRowsAtOnce + 1) + kVectorLanes)) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        G = memory.data() + (64 - address % 64) % 64 / sizeof(double);
        b = G + stride * width;
        step = b + stride * kRowsAtOnce;
    }
    Index stride;
    std::vector<double> memory;
    double *G, *b, *step;
};

template <class I>
ATOMLEARN_INLINE void ridge_sums(const FactorRidge<I>& ridge, Index row, const RidgeRoom& room) {
    const Index width = ridge.width, stride = room.stride, stop = ridge.indptr[row + 1];
    std::fill(room.G, room.G + stride * width, 0.0);
    std::fill(room.step, room.step + stride, 0.0);
    const double *b0 = room.b, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
    for (Index e = ridge.indptr[row]; e < stop; e += kRowsAtOnce) {
        double g[kRowsAtOnce] = {}, h[kRowsAtOnce] = {};
        for (Index i = 0; i < kRowsAtOnce; ++i) {
            double* to = room.b + i * stride;
            if (e + i >= stop) {
                std::fill(to, to + width, 0.0);
                continue;
            }
            const Index sample = ridge.order == nullptr ? e + i : Index(ridge.order[e + i]);
            const double* from = ridge.factor + static_cast<Index>(ridge.indices[e + i]) * width;
            std::copy(from, from + width, to);
            g[i] = ridge.slope[sample];
            h[i] = ridge.curvature[sample];
        }
#pragma omp simd
        for (Index k = 0; k < stride; ++k)
            room.step[k] -= g[0] * b0[k] + g[1] * b1[k] + g[2] * b2[k] + g[3] * b3[k];
        for (Index j = 0; j < width; ++j) {
            const double c0 = h[0] * b0[j], c1 = h[1] * b1[j];
            const double c2 = h[2] * b2[j], c3 = h[3] * b3[j];
            double* sums = room.G + j * stride;
            const Index first = j / kVectorLanes * kVectorLanes;
#pragma omp simd
            for (Index k = first; k < stride; ++k)
                sums[k] += c0 * b0[k] + c1 * b1[k] + c2 * b2[k] + c3 * b3[k];
        }
    }
}

template <class I>
ATOMLEARN_INLINE void ridge_rows(const FactorRidge<I>& ridge, Range rows, double* out) {
    const Index width = ridge.width;
    const RidgeRoom room(width);
    for (Index row = rows.begin; row < rows.end; ++row) {
        ridge_sums(ridge, row, room);
        double* a = out + row * width;
        for (Index k = 0; k < width; ++k) {
            room.G[k * room.stride + k] += ridge.amount;
            room.step[k] -= ridge.amount * a[k];
        }
        if (!blas::cholesky(width, room.G, room.stride)) continue;
        blas::cholesky_solve(width, room.G, room.stride, room.step);
        // LAPACK need not say that a number is not finite.
        if (!std::isfinite(std::accumulate(room.step, room.step + width, 0.0))) continue;
        for (Index k = 0; k < width; ++k) a[k] += room.step[k];
    }
}

// Calls f with the positions of a compressed matrix, their beginnings and the number of rows.
template <class F>
void by_positions(const Vector& indices, const Vector& indptr, F&& f) {
    by_index(indices, [&]<class I>(const I* positions) {
        expect_pointers<I>(indptr, size_of(indices));
        f(positions, static_cast<const I*>(indptr.data()), size_of(indptr) - 1);
    });
}

// out[e] = <left_i, right_j> for each stored position e = (i, j).
void sampled_products(const Vector& indices, const Vector& indptr, const Rows& left,
                      const Rows& right, const OutDoubles& out) {
    const Index width = size_of(left, 1);
    by_positions(indices, indptr, [&]<class I>(const I* at, const I* starts, Index n_rows) {
        by_entries(starts, n_rows, width, [&](Range rows) {
            vectorized<products_of<I>>(at, starts, rows, width, left.data(), right.data(),
                                       out.data());
        });
    });
}

// out = X right.
void sparse_times_rows(const Doubles& data, const Vector& indices, const Vector& indptr,
                       const Rows& right, const OutDoubleMatrix& out) {
    const Index width = size_of(right, 1);
    by_positions(indices, indptr, [&]<class I>(const I* at, const I* starts, Index n_rows) {
        by_entries(starts, n_rows, width, [&](Range rows) {
            vectorized<rows_of<I>>(data.data(), at, starts, rows, width, right.data(), out.data());
        });
    });
}

// ``order`` is empty where samples come in the order of the positions.
void factor_ridge(const Vector& indices, const Vector& indptr, const Vector& order,
                  const Doubles& slope, const Doubles& curvature, const Rows& factor, double amount,
                  const OutDoubleMatrix& out) {
    const Index width = size_of(factor, 1);
    by_positions(indices, indptr, [&]<class I>(const I* at, const I* starts, Index n_rows) {
        const I* places = size_of(order) ? static_cast<const I*>(order.data()) : nullptr;
        const FactorRidge<I> ridge{at,           starts,           places,        width,
                                   slope.data(), curvature.data(), factor.data(), amount};
        by_entries(starts, n_rows, width * width,
                   [&](Range rows) { vectorized<ridge_rows<I>>(ridge, rows, out.data()); });
    });
}

}  // namespace

void bind_sampled(nb::module_& m) {
    define(m, "sampled_products", &sampled_products);
    define(m, "sparse_times_rows", &sparse_times_rows);
    define(m, "factor_ridge", &factor_ridge);
}

}  // namespace atomlearn
