// Block pivoting on the signs of an l1-penalized quadratic, free of Python.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// min over w of 1/2 d'(H + ridge I)d + slope'd + sum_j price_j |w_j| with d = w - start, H = `gram`
// with `size` rows `stride` apart, price > 0. At most `most` coordinates are used.
struct SignedQuadratic {
    const double* gram;
    Index stride;
    Index size;
    const double* slope;
    const double* price;
    double ridge;
    Index most;
};

// L L' = H_FF + ridge I for the coordinates F = order[0 .. count) that were used last, column i of
// L from factor + i * stride; kept between calls as long as H among F and the ridge stay the same.
struct SupportFactor {
    double* factor;
    Index stride;
    Index* order;
    Index count;
};

enum class PivotStatus : int { optimal = 0, no_progress = 1, dependent = 2, too_many = 3 };

struct PivotOutcome {
    PivotStatus status = PivotStatus::optimal;
    Index systems = 0;
};

// weights: in, the start, whose signs come first; out, the solution where the status is optimal,
// else unchanged. Whoever calls has asked blas::ready().
PivotOutcome pivot_signs(const SignedQuadratic& quadratic, SupportFactor& state, double* weights);

}  // namespace atomlearn
