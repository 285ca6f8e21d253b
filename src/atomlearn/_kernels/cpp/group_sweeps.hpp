// Exact minimization over one group after the other, for a quadratic loss of stored columns.
#pragma once

#include <vector>

#include "group_newton.hpp"

namespace atomlearn {

// The duality gap of f(A w) + sum_g limit_g ||u_g|| at a point, with the dual point scaled into the
// unit ball of the polar or penalized for what exceeds it, whichever is better. residual:
// ||target - B w||^2; inner: (target - B w)'target; polar: the largest ||A_g'(target - B w)|| /
// limit_g.
double group_gap(double residual, double inner, double penalty, double polar);

// Moves u, one entry a member, by sweeps over the groups in use and those that violate optimality.
// Ends once the gap is at most `gap_target`, or as soon as it would take more work than Newton
// steps on the scalings. Returns the gap, infinity if it is not known.
double sweep_groups(const LeastSquares& loss, const Groups& groups, const double* limit,
                    double gap_target, double* u);

}  // namespace atomlearn
