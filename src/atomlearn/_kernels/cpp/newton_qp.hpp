// Newton steps by quadratic programs for a loss under l1 over a few columns, free of Python.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "few_columns.hpp"
#include "platform.hpp"
#include "sample_losses.hpp"

namespace atomlearn {

// min over c, b of  sum_i s_i loss(y_i, a_i'c + b) + ridge/2 c'c + level g + coupling/2 g^2 with
// g = p'|c| (over c >= 0 where not `is_signed`), and g <= radius where that is finite.
struct PricedProblem {
    const FewColumns& columns;
    Index count;
    Samples samples;
    const double* price;
    double level;
    double coupling;
    double ridge;
    double radius;
    bool is_signed;
    bool intercept;
};

// The Hessian of the last model, kept for the next: of the columns `chosen`, less their means, at
// curvatures that were `curvature` before damping, rows `stride` apart, and the factor of those of
// them that its minimum used. Valid as long as columns keep their numbers.
struct KeptHessian {
    using Square = std::unique_ptr<double[]>;  // what is not written costs nothing
    std::vector<Index> chosen, order;
    std::vector<double> curvature, damped, means;
    Square gram, factor;
    Index stride = 0, factored = 0;
    double mass = 0.0, damping = 0.0, ridge = 0.0;
    bool intercept = false;
};

struct NewtonLimits {
    double gap;                   // ends where about so much is left, as the kernel sees it
    Index batch;                  // columns that enter between two solves of the active-set method
    Index steps;                  // at most so many
    Index columns;                // at most so many in a model
    double work;                  // and no model that takes so many multiplications to make
    std::function<bool()> going;  // asked before each step
};

// Moves `weights`, feasible, and `shift`, the intercept, until the gap is small, a step promises no
// decrease beyond rounding, or a limit is met. Returns the number of steps; the point is never
// worse than the start.
Index newton_qp(const PricedProblem& problem, double* weights, double* shift,
                const NewtonLimits& limits, KeptHessian& kept);

}  // namespace atomlearn
