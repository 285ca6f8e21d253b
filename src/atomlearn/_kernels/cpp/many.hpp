// X'V for several vectors in one reading of X, and what is asked of it without storing it.
#pragma once

#include <vector>

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

// The columns that some vector asks for: columns in order, values of `width` numbers each.
struct Found {
    std::vector<Index> columns;
    std::vector<double> values;
};

// What to do with the scores of a few columns: store them, and/or look at them.
//
// stored: (count, n_columns), rows contiguous, or null. scale: `width` numbers >= 0, or null: a
// column j is found where max_k |z_jk| scale_k >= 1.
struct Wanted {
    double* stored;
    Index n_columns;
    const double* scale;
};

// sums[c * v.width + k] += x_c'V_k for `count` columns of `n` entries, the rows of V.
void add_dots(const double* const* x, Index count, Index n, const Several& v, double* sums);

template <class T>
Found dense_many(const Majors<T>& x, bool rows_contiguous, const Several& v, const Wanted& wanted);
template <class T, class I>
Found sparse_many(const Compressed<T, I>& x, bool by_columns, const Several& v,
                  const Wanted& wanted);

}  // namespace atomlearn
