// Block pivoting on the signs of an l1-penalized quadratic, free of Python.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// min over w of 1/2 d'(H + ridge I)d + slope'd + sum_j price_j |w_j| with d = w - start, H = `gram`
// with `size` rows `stride` apart, price > 0; over
// w >= 0 where not `is_signed`. At most `most` coordinates are used.
struct SignedQuadratic {
    const double* gram;
    Index stride;
    Index size;
    const double* slope;
    const double* price;
    double ridge;
    Index most;
    bool is_signed = true;
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

struct PivotedPath {
    PivotStatus status = PivotStatus::optimal;
    Index levels = 0;
    Index systems = 0;
};

// The solutions at the prices levels[k] * price, each from the one before, the first from `start`,
// where the slope is: rows of `size` numbers, up to the first that is not optimal. Whoever calls
// has asked blas::ready().
PivotedPath pivot_path(const SignedQuadratic& quadratic, const double* levels, Index count,
                       SupportFactor& state, const double* start, double* rows);

}  // namespace atomlearn
