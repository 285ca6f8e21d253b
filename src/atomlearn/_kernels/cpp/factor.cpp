// Rank-one changes of a Cholesky factor. [Golub, Van Loan 2013, sections 6.5.2 and 6.5.4]
#include "factor.hpp"

#include <cmath>
#include <cstring>

namespace atomlearn {
namespace {

// With the old column `position` gone, row i of the rows below starts one entry left of the
// diagonal. Rows i and i + 1 are rotated so that this entry vanishes; row i moves one to the left.
ATOMLEARN_INLINE void rotate_up(double* factor, Index stride, Index size, Index position) {
    for (Index i = position; i + 1 < size; ++i) {
        double* upper = factor + i * stride;
        double* lower = upper + stride;
        const double radius = std::hypot(upper[i + 1], lower[i + 1]);
        const double cosine = radius > 0.0 ? upper[i + 1] / radius : 1.0;
        const double sine = radius > 0.0 ? lower[i + 1] / radius : 0.0;
        // Entry j of the upper row is read before entry j - 1 is written, in order of j.
#pragma omp simd
        for (Index j = i + 1; j < size; ++j) {
            const double above = upper[j];
            const double below = lower[j];
            upper[j - 1] = cosine * above + sine * below;
            lower[j] = cosine * below - sine * above;
        }
        upper[i] = radius;
    }
}

ATOMLEARN_INLINE void transposed_solve(const double* factor, Index stride, Index size, double* x) {
    for (Index i = 0; i < size; ++i) {
        const double* row = factor + i * stride;
        const double value = x[i] / row[i];
        x[i] = value;
#pragma omp simd
        for (Index j = i + 1; j < size; ++j) x[j] -= value * row[j];
    }
}

ATOMLEARN_INLINE void plain_solve(const double* factor, Index stride, Index size, double* x) {
    for (Index i = size - 1; i >= 0; --i) {
        const double* row = factor + i * stride;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (Index j = i + 1; j < size; ++j) sum += row[j] * x[j];
        x[i] = (x[i] - sum) / row[i];
    }
}

}  // namespace

void solve_transposed(const double* factor, Index stride, Index size, double* x) {
    vectorized<transposed_solve>(factor, stride, size, x);
}

void solve_plain(const double* factor, Index stride, Index size, double* x) {
    vectorized<plain_solve>(factor, stride, size, x);
}

void factor_solve(const double* factor, Index stride, Index size, double* x) {
    solve_transposed(factor, stride, size, x);
    solve_plain(factor, stride, size, x);
}

double factor_append(double* factor, Index stride, Index size, double* column, double diagonal,
                     double least) {
    solve_transposed(factor, stride, size, column);
    double square = 0.0;
    for (Index i = 0; i < size; ++i) {
        factor[i * stride + size] = column[i];
        square += column[i] * column[i];
    }
    const double pivot = diagonal - square;
    factor[size * stride + size] = std::sqrt(pivot > least ? pivot : least);
    return pivot;
}

void factor_delete(double* factor, Index stride, Index size, Index position) {
    const auto tail = static_cast<std::size_t>(size - position - 1) * sizeof(double);
    for (Index i = 0; i < position; ++i) {
        double* at = factor + i * stride + position;
        std::memmove(at, at + 1, tail);
    }
    vectorized<rotate_up>(factor, stride, size, position);
}

}  // namespace atomlearn
