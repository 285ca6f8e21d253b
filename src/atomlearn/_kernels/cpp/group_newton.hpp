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

}  // namespace atomlearn
