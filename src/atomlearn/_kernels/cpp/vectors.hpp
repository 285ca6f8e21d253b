// Sums over vectors of doubles that are too short for the BLAS and its threads.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// x'y.
double dot(const double* x, const double* y, Index size);
// y += factor x.
void add_multiple(double* y, double factor, const double* x, Index size);
// y -= the sum of factors[r] times row rows[r] of the matrix, four rows at a time: each entry of y
// is read once for four products.
void subtract_rows(double* y, const double* matrix, Index stride, const Index* rows,
                   const double* factors, Index count, Index size);

}  // namespace atomlearn
