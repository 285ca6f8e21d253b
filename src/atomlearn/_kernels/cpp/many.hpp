// X'V for several vectors in one reading of X.
#pragma once

#include "kernels.hpp"

namespace atomlearn {

// The largest power of two of vectors whose sums stay in registers.
constexpr Index kVectorLanes = 8;

// V: rows of `width` numbers, a multiple of eight, for `count` vectors; what is beyond is zero.
struct Several {
    const double* data;
    Index width;
    Index count;
};

// sums[c * v.width + k] += x_c'V_k for `count` columns of `n` entries, the rows of V.
void add_dots(const double* const* x, Index count, Index n, const Several& v, double* sums);

// out (v.count x n_columns) = V'X; for compressed columns, X by columns.
template <class T>
void dense_many(const Majors<T>& x, bool rows_contiguous, const Several& v, double* out);
template <class T, class I>
void sparse_many(const Compressed<T, I>& x, const Several& v, double* out);

}  // namespace atomlearn
