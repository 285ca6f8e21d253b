// Newton steps by quadratic programs for a loss under l1 over a few columns, free of Python.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "few_columns.hpp"
#include "platform.hpp"

namespace atomlearn {

// f(z), a sum over samples: whoever calls the kernel computes it. `smoothness` bounds the second
// derivative for a unit weight, infinity where nothing does.
struct SampleLoss {
    Index count;
    const double* weight;
    double smoothness;
    bool quadratic;
    std::function<double(const double* z)> value;
    // f', and the diagonal f''.
    std::function<void(const double* z, double* first, double* second)> differentiate;
    // f(z) + f*(share f'(z)) - share <f'(z), z> at the z of the last `differentiate`.
    std::function<double(double share)> bend;
};

// min over c, b of  f(A c + b) + ridge/2 c'Mc + level g + coupling/2 g^2 with g = p'|c| (over
// c >= 0 where not `is_signed`), and g <= radius where that is finite. No metric: M is I.
struct PricedProblem {
    const FewColumns& columns;
    Index count;
    const SampleLoss& loss;
    const double* metric;
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
    Index steps;                  // at most so many
    std::function<bool()> going;  // asked before each step
};

// Moves `weights`, feasible, and `shift`, the intercept, until the gap is small, a step promises no
// decrease beyond rounding, or a limit is met. Returns the number of steps; the point is never
// worse than the start.
Index newton_qp(const PricedProblem& problem, double* weights, double* shift,
                const NewtonLimits& limits, KeptHessian& kept);

}  // namespace atomlearn
