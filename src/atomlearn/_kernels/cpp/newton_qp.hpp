// Newton steps by active-set QPs for a loss under l1 over a few dense columns, free of Python.
#pragma once

#include "platform.hpp"

namespace atomlearn {

enum class SmallLoss : int { squared = 0, logistic = 1, squared_hinge = 2 };

// min over c, b of  sum_i s_i loss(y_i, a_i'c + b) + ridge/2 c'c + level g + coupling/2 g^2 with
// g = p'|c| (over c >= 0 where not `is_signed`), and g <= radius where that is finite.
// `columns` has its `count` columns of `samples` entries one after the other.
struct SmallProblem {
    const double* columns;
    Index samples;
    Index count;
    const double* target;
    const double* sample_weight;
    SmallLoss loss;
    const double* price;
    double level;
    double coupling;
    double ridge;
    double radius;
    bool is_signed;
    bool intercept;
};

// Moves `weights`, feasible, and `shift`, the intercept, to where a step promises no decrease
// beyond rounding, or for the most steps. Returns the number of steps; the point is never worse
// than the start.
Index newton_qp(const SmallProblem& problem, double* weights, double* shift, Index batch,
                Index most);

}  // namespace atomlearn
