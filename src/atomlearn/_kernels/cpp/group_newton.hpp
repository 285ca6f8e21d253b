// Newton's method on the scalings of groups, for a quadratic loss.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// Group g holds members[starts[g]] .. members[starts[g + 1] - 1]; groups may overlap.
struct Groups {
    const Index* starts;
    const Index* members;
    Index count;
    Index n_features;
};

// f(A w) = 1/2 ||target - B w||^2 with B of `length` rows, by columns `stride` apart (samples), or
// by G = B'B, h = B'target and its squared norm (gram). The other pointers are null.
struct LeastSquares {
    const double* gram;
    Index gram_stride;
    const double* linear;
    const double* columns;
    Index stride;
    Index length;
    const double* target;
    double squared_target;
};

enum class NewtonStatus : int {
    reached = 0,
    step_limit = 1,  // or that of the work
    no_descent = 2,  // rounding, or a system without a factor
    not_finite = 3
};

struct NewtonOutcome {
    NewtonStatus status = NewtonStatus::step_limit;
    Index steps = 0;
    Index systems = 0;
    double objective = kInfinity;
    double gap = kInfinity;
};

// Minimises f(A w) + sum_g limit_g ||u_g|| over w = sum of the u_g. On any status `scalings` and
// `slopes` are those of the point of least gap: u_g = t_g slopes over the members of g.
NewtonOutcome group_newton(const LeastSquares& loss, const Groups& groups, const double* limit,
                           double* scalings, double* slopes, double gap_target, Index max_steps);

}  // namespace atomlearn
