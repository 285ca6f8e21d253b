// Dense linear algebra by the BLAS and LAPACK that SciPy brings, through the function pointers of
// scipy.linalg.cython_blas and cython_lapack: nothing is linked, and Python hands them over before
// any kernel that needs them. Matrices are stored by columns, `stride` entries apart.
#pragma once

#include "platform.hpp"

namespace atomlearn::blas {

// Replaces the lower triangle by the Cholesky factor L; false where that does not exist.
bool cholesky(Index size, double* a, Index stride);
// B = (L L')^-1 B for `count` columns, one after the other.
void cholesky_solve(Index size, const double* l, Index stride, double* b, Index count = 1);
// Replaces L by the lower triangle of (L L')^-1.
void cholesky_inverse(Index size, double* l, Index stride);
// B = L^-1 B for `count` columns.
void solve_lower(Index size, Index count, const double* l, Index stride, double* b, Index b_stride);
// Lower triangle of C = alpha A'A + beta C, A with `size` columns of `length` entries.
void add_gram(Index size, Index length, double alpha, const double* a, Index stride, double beta,
              double* c, Index c_stride);
// Lower triangle of C = alpha A A' + beta C, A with `count` columns of `size` entries.
void add_outer(Index size, Index count, double alpha, const double* a, Index stride, double beta,
               double* c, Index c_stride);
// C = A'B + beta C, A and B with columns of `length` entries, `rows` and `count` of them.
void product(Index rows, Index count, Index length, const double* a, Index a_stride,
             const double* b, Index b_stride, double beta, double* c, Index c_stride);
// Replaces a symmetric matrix by its eigenvectors, one a column, and writes its eigenvalues in
// increasing order; false where they are not found.
bool eigenvectors(Index size, double* a, double* values);
// y = A'x, A with `count` columns of `length` entries.
void transposed_product(Index length, Index count, const double* a, Index stride, const double* x,
                        double* y);

}  // namespace atomlearn::blas
