// Coordinate descent on an l1-penalized quadratic whose matrix is in float32.
#include <cmath>

#include "bindings.hpp"

namespace atomlearn {
namespace {

// slope += change row, for a row of the matrix.
ATOMLEARN_INLINE void add_row(double* slope, double change, const float* row, Index size) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) slope[i] += change * static_cast<double>(row[i]);
}

// argmin over w of slope w + 1/2 bend (w - at)^2 + price |w|; over w >= 0 where not `is_signed`.
double least(double at, double slope, double bend, double price, bool is_signed) {
    const double there = bend * at - slope;
    if (there > price) return (there - price) / bend;
    return is_signed && there < -price ? (there + price) / bend : 0.0;
}

// gram: H. slope: H (w - start) + ridge w + what was given, kept up to date. Returns the sweeps:
// the last one moved no slope by more than `tolerance` times a price.
Index descend_quadratic(const nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>& gram,
                        const OutDoubles& slope, const Doubles& price, const OutDoubles& weights,
                        double ridge, bool is_signed, double tolerance, Index most) {
    const Index size = size_of(weights);
    expect(size_of(gram) == size && size_of(gram, 1) == size && size_of(slope) == size &&
               size_of(price) == size && (size <= 1 || gram.stride(1) == 1),
           "gram, slope, price and weights do not fit together");
    double* w = weights.data();
    double* g = slope.data();
    for (Index sweep = 1; sweep <= most; ++sweep) {
        double moved = 0.0;
        for (Index j = 0; j < size; ++j) {
            const double p = price.data()[j];
            if (w[j] == 0.0 && std::fabs(g[j]) <= p) continue;
            const float* row = gram.data() + j * gram.stride(0);
            const double bend = static_cast<double>(row[j]) + ridge;
            if (!(bend > 0.0)) continue;
            const double change = least(w[j], g[j], bend, p, is_signed) - w[j];
            if (change == 0.0) continue;
            w[j] += change;
            vectorized<add_row>(g, change, row, size);
            g[j] += ridge * change;
            moved = std::max(moved, std::fabs(change) * bend / p);
        }
        if (moved <= tolerance) return sweep;
    }
    return most;
}

}  // namespace

void bind_descent(nb::module_& m) {
    define(m, "descend_quadratic", &descend_quadratic);
}

}  // namespace atomlearn
