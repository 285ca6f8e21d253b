// Sums over vectors.
#include "vectors.hpp"

namespace atomlearn {
namespace loops {

ATOMLEARN_INLINE double dot(const double* x, const double* y, Index size) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index i = 0; i < size; ++i) total += x[i] * y[i];
    return total;
}

ATOMLEARN_INLINE void add_multiple(double* y, double factor, const double* x, Index size) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) y[i] += factor * x[i];
}

ATOMLEARN_INLINE void subtract_rows(double* y, const double* matrix, Index stride,
                                    const Index* rows, const double* factors, Index count,
                                    Index size) {
    Index r = 0;
    for (; r + 4 <= count; r += 4) {
        const double* a = matrix + rows[r] * stride;
        const double* b = matrix + rows[r + 1] * stride;
        const double* c = matrix + rows[r + 2] * stride;
        const double* d = matrix + rows[r + 3] * stride;
        const double fa = factors[r], fb = factors[r + 1], fc = factors[r + 2], fd = factors[r + 3];
#pragma omp simd
        for (Index j = 0; j < size; ++j) y[j] -= fa * a[j] + fb * b[j] + fc * c[j] + fd * d[j];
    }
    for (; r < count; ++r) {
        const double* a = matrix + rows[r] * stride;
        const double fa = factors[r];
#pragma omp simd
        for (Index j = 0; j < size; ++j) y[j] -= fa * a[j];
    }
}

}  // namespace loops

double dot(const double* x, const double* y, Index size) {
    return vectorized<loops::dot>(x, y, size);
}

void add_multiple(double* y, double factor, const double* x, Index size) {
    vectorized<loops::add_multiple>(y, factor, x, size);
}

void subtract_rows(double* y, const double* matrix, Index stride, const Index* rows,
                   const double* factors, Index count, Index size) {
    vectorized<loops::subtract_rows>(y, matrix, stride, rows, factors, count, size);
}

}  // namespace atomlearn
