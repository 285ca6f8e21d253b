// Group norms, soft thresholding, and sums over vectors.
#include "vectors.hpp"

#include <cmath>
#include <vector>

#include "kernels.hpp"

namespace atomlearn {
namespace {

template <class T>
bool add_squares(const T* z, const Index* labels, Range range, Index n_groups, double* sums) {
    for (Index j = range.begin; j < range.end; ++j) {
        const Index label = labels[j];
        if (label < 0 || label >= n_groups) return false;
        const double value = z[j];
        sums[label] += value * value;
    }
    return true;
}

template <class T>
ATOMLEARN_INLINE void soft_threshold_range(const T* v, Range range, double threshold, T* out) {
#pragma omp simd
    for (Index j = range.begin; j < range.end; ++j) {
        const double magnitude = std::fabs(static_cast<double>(v[j])) - threshold;
        out[j] = std::copysign(static_cast<T>(magnitude > 0.0 ? magnitude : 0.0), v[j]);
    }
}

}  // namespace

template <class T>
Status group_norms(const T* z, const Index* labels, Index n, Index n_groups, double* out) {
    // A buffer of sums for each thread pays only where the groups are fewer than the entries.
    const int threads = 2 * n_groups <= n ? threads_for(4 * n) : 1;
    std::vector<double> extra(static_cast<std::size_t>((threads - 1) * n_groups), 0.0);
    std::fill(out, out + n_groups, 0.0);
    std::vector<char> good(static_cast<std::size_t>(threads));
    in_parallel(threads, [&](int part) {
        good[part] = add_squares(z, labels, piece(n, part, threads), n_groups,
                                 part == 0 ? out : extra.data() + (part - 1) * n_groups);
    });
    if (std::find(good.begin(), good.end(), 0) != good.end()) return Status::bad_label;
    for (Index g = 0; g < n_groups; ++g) {
        for (int part = 1; part < threads; ++part) out[g] += extra[(part - 1) * n_groups + g];
        out[g] = std::sqrt(out[g]);
    }
    return Status::ok;
}

template <class T>
void soft_threshold(const T* v, Index n, double threshold, T* out) {
    const int threads = threads_for(4 * n);
    in_parallel(threads, [&](int part) {
        vectorized<soft_threshold_range<T>>(v, piece(n, part, threads), threshold, out);
    });
}

#define ATOMLEARN_INSTANTIATE(T)                                                   \
    template Status group_norms<T>(const T*, const Index*, Index, Index, double*); \
    template void soft_threshold<T>(const T*, Index, double, T*);
ATOMLEARN_INSTANTIATE(float)
ATOMLEARN_INSTANTIATE(double)

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
