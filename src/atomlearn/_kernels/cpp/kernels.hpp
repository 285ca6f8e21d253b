// The kernels, free of Python: pointers in, numbers out. Shapes and types were checked before.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// A dense matrix seen as `count` contiguous vectors of `length` entries, `stride` apart: the rows
// of a C-ordered array, the columns of a Fortran-ordered one. Optionally some vectors by position.
template <class T>
struct Majors {
    const T* data;
    Index stride;
    Index count;
    Index length;
    const Index* major_subset;  // null: all; else `count` positions
    const T* at(Index major) const {
        return data + (major_subset ? major_subset[major] : major) * stride;
    }
};

// out[major] = sum over minor of v[minor] * x (or x^2).
template <class T>
void dense_dots(const Majors<T>& x, const double* v, double* out, bool squared);
// out[minor] = sum over major of v[major] * x (or x^2).
template <class T>
void dense_sums(const Majors<T>& x, const double* v, double* out, bool squared);
// out[:, m] = x[rows, columns[m]] in Fortran order.
template <class T, class U>
void dense_gather(const T* x, Index row_stride, Index column_stride, const Index* rows,
                  Index n_rows, const Index* columns, Index n_columns, U* out);
// out[p] = sum_i v_i x_i,first[p] x_i,second[p] for contiguous columns `stride` apart.
template <class T>
void dense_pair_sums(const T* x, Index stride, Index n, const Index* first, const Index* second,
                     Index count, const double* v, double* out);

// Compressed vectors: CSR rows or CSC columns.
template <class T, class I>
struct Compressed {
    const T* data;
    const I* indices;
    const I* indptr;
    Index count;
    Index length;
    const Index* major_subset;
    Index at(Index major) const { return major_subset ? major_subset[major] : major; }
    Index begin(Index major) const { return static_cast<Index>(indptr[at(major)]); }
    Index end(Index major) const { return static_cast<Index>(indptr[at(major) + 1]); }
};

template <class T, class I>
void sparse_dots(const Compressed<T, I>& x, const double* v, double* out, bool squared);
template <class T, class I>
void sparse_sums(const Compressed<T, I>& x, const double* v, double* out, bool squared);
// out (length x length) = sum over majors of weights[major] * x x'; no index twice in a major.
template <class T, class I>
void sparse_squares(const Compressed<T, I>& x, const double* weights, double* out);
// out[p] = sum_i v_i x_i,first[p] x_i,second[p] for columns with sorted rows.
template <class T, class I>
void sparse_pair_sums(const Compressed<T, I>& x, const Index* first, const Index* second,
                      Index count, const double* v, double* out);

// out[e] = <left_i, right_j> over `width` numbers for each stored position e = (i, j).
template <class I>
void sampled_products(const I* indices, const I* indptr, Index n_rows, Index width,
                      const double* left, const double* right, double* out);
// out (n_rows x width, rows contiguous) = X right.
template <class I>
void sparse_times_rows(const double* data, const I* indices, const I* indptr, Index n_rows,
                       Index width, const double* right, double* out);

// For each row i of stored positions (i, j): one step of Newton for the row a of ``out``,
// a - (sum h b b' + amount)^-1 (sum g b + amount a), over its positions e with b = factor_j, slope
// g and curvature h of sample order[e] (e itself where there is no order). amount > 0, h >= 0; rows
// whose system has no Cholesky factor (numbers that are not finite) stay.
template <class I>
struct FactorRidge {
    const I *indices, *indptr, *order;
    Index n_rows, width;
    const double *slope, *curvature, *factor;
    double amount;
};
template <class I>
void factor_ridge(const FactorRidge<I>& ridge, double* out);

enum class Status : int { ok = 0, not_finite = 1 };

// The `count` entries of largest magnitude, largest first, ties by smaller index.
template <class T>
Status top_magnitude(const T* z, Index n, Index count, Index* indices, double* values);
// The l2 norm of the `count` entries of largest magnitude.
template <class T>
Status top_norm(const T* z, Index n, Index count, double* norm);

// prox of (step/2) (k-support norm)^2; scale is the t of d = clip(t |v| - step, 0, 1).
template <class T>
Status ksupport_prox(const T* v, Index n, Index k, double step, T* w, double* scale);
template <class T>
Status ksupport_gauge(const T* w, Index n, Index k, double* gauge);

enum class Alternative : int { exhaustive = 0, box_norm = 1, binary_search = 2, two_step = 3 };
template <class T>
Status ksupport_prox_alternative(Alternative method, const T* v, Index n, Index k, double step,
                                 T* w, double* scale);
// w = sign(v) clip(|v| - theta, 0, shrink |v|), theta = high + low; false where v is not finite.
template <class T>
bool shrink_and_threshold(const T* v, Index n, double theta_high, double theta_low, double shrink,
                          T* w);

}  // namespace atomlearn
