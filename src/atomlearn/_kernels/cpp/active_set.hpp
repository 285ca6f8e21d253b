// Active-set quadratic programming on a dense Gram matrix, free of Python.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// min 1/2 c'Qc - linear'c + level p'c  over c >= 0, with Q = gram + coupling p p' + ridge I; and
// p'c <= radius where that is finite, p'c = radius where `equality`. Where `is_signed`, over c of
// either sign, with p_j = sign(c_j) price_j. `size` atoms, rows of gram `stride` apart.
struct QuadraticProgram {
    const double* gram;
    Index stride;
    Index size;
    const double* linear;
    bool linear_is_gradient;  // `linear` is gram c + ridge c - linear at the start c instead
    const double* price;      // null: all ones
    double coupling;
    double ridge;
    double radius;
    bool equality;
    double level = 0.0;
    bool is_signed = false;
};

// The atoms in use and the factor of their part of Q, kept between calls: `order` lists them in
// the order of the factor's rows. `sigma` > 0 where sigma p p' was added before factoring.
struct ActiveFactor {
    double* factor;
    Index stride;
    Index* order;
    Index count;
    Index updates;
    double sigma;
};

enum class QPStatus : int {
    optimal = 0,
    pivot_limit = 1,
    inexact = 2,
    not_finite = 3,
    bad_state = 4
};

struct QPOutcome {
    QPStatus status = QPStatus::optimal;
    Index pivots = 0;  // full steps and drop steps
};

// Moves `weights` (the warm start) to the minimum; on any status they are feasible and, but for
// rounding, no worse than where they started once made feasible.
QPOutcome active_set(const QuadraticProgram& program, ActiveFactor& state, double* weights,
                     Index batch, Index max_pivots);

}  // namespace atomlearn
