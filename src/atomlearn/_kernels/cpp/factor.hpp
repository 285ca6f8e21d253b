// The Cholesky factor R of a Gram matrix, R'R = G, that grows and shrinks by rows: O(k^2) a change.
//
// R is upper triangular and stored by rows in a square buffer of the caller, `stride` entries
// apart; what lies below the diagonal is never read.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// Residuals that leave no doubt: above this share a factor is corrected, or computed afresh.
constexpr double kDrift = 1e-11;

// x = R^-T x: forward substitution.
void solve_transposed(const double* factor, Index stride, Index size, double* x);
// x = R^-1 x: backward substitution.
void solve_plain(const double* factor, Index stride, Index size, double* x);
// x = (R'R)^-1 x.
void factor_solve(const double* factor, Index stride, Index size, double* x);

// Appends one row and column, the Gram entries of a new atom with the `size` old ones in `column`
// (overwritten) and with itself in `diagonal`. A squared pivot that is not above `least` is raised
// to it, which adds as much to the new diagonal entry. Returns the squared pivot before that.
double factor_append(double* factor, Index stride, Index size, double* column, double diagonal,
                     double least);

// Takes out the row and column at `position`; Givens rotations make R triangular again.
void factor_delete(double* factor, Index stride, Index size, Index position);

}  // namespace atomlearn
