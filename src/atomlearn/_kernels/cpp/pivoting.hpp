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

// The solutions at the prices levels[k] * price, each from the one before, the first from `start`,
// where the slope is: rows of `size` numbers, until exchanges cycle, or more would be used than may
// be. A column that depends on those in use is left out. Returns how many levels are solved.
Index pivot_path(const SignedQuadratic& quadratic, const double* levels, Index count,
                 SupportFactor& state, const double* start, double* rows);

}  // namespace atomlearn
