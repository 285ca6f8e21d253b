// X'V for several vectors in one reading of X.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// V: rows of `width` numbers, a multiple of eight, for `count` vectors; what is beyond is zero.
struct Several {
    const double* data;
    Index width;
    Index count;
};

// sums[c * v.width + k] += x_c'V_k for `count` columns of `n` entries, the rows of V.
void add_dots(const double* const* x, Index count, Index n, const Several& v, double* sums);

}  // namespace atomlearn
