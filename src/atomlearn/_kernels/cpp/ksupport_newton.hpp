// A quadratic under the k-support norm of single columns, start to end, free of Python.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// min over w of 1/2 w'Hw - pull'w + level g(w), or + level/2 g(w)^2 where `squared`, g the
// k-support norm. H = A'A for the `rows` x `count` matrix `data` stored by columns; where `gram`,
// `data` is H itself and rows = count.
struct SupportQuadratic {
    const double* data;
    Index rows;
    Index count;
    bool gram;
    const double* pull;
    Index k;
    double level;
    bool squared;
};

// Moves `weights` to where rounding ends the steps, or for the most steps. Returns the number of
// steps; the point is never worse than the start. Whoever calls has asked blas::ready().
Index ksupport_newton(const SupportQuadratic& problem, double* weights, Index most);

}  // namespace atomlearn
