// Losses that are sums over samples, with their first two derivatives, free of Python.
#pragma once

#include "platform.hpp"

namespace atomlearn {

enum class SampleLoss : int {
    squared = 0,
    logistic = 1,
    squared_hinge = 2,
    poisson = 3,
    huber = 4
};

// Huber's loss, and every other that is max over a in [low, high] of a r - width/2 a^2, r = z - y.
struct ClippedSlopes {
    double low, high, width;
};

// sum_i s_i loss(y_i, z_i). `slopes` are those of Huber's. Poisson's is half the deviance.
struct Samples {
    const double* target;
    const double* weight;
    Index count;
    SampleLoss loss;
    ClippedSlopes slopes;

    // The sum at z.
    double value(const double* z) const;
    // s_i times the first and the second derivative.
    void differentiate(const double* z, double* first, double* second) const;
    // f(z) + f*(share f'(z)) - share <f'(z), z>, to second order: exactly for Huber's.
    double slack(const double* z, const double* first, const double* second, double share) const;
    // s_i times the curvature of a parabola above the loss that touches it at z; the largest there
    // is, where none lies above.
    void bound(const double* z, const double* second, double* upper) const;
};

}  // namespace atomlearn
