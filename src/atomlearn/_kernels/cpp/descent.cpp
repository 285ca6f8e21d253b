// Coordinate descent on an l1-penalized quadratic, with the lower half of its matrix in float32.
//
// Strip k has `width` rows of the matrix H, from row k width on, and their columns up to the last
// of these rows, as k + 1 square tiles. The slopes of a strip and of those before it follow each
// change of a coefficient of the strip. Those of later strips follow once the strip is done: no
// slope is old where it is used.
#include <nanobind/stl/vector.h>

#include <cmath>
#include <vector>

#include "bindings.hpp"

namespace atomlearn {
namespace {

// slope += change row, for a row of the matrix.
ATOMLEARN_INLINE void add_row(double* slope, double change, const float* row, Index size) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) slope[i] += change * static_cast<double>(row[i]);
}

// slope += T changes for a tile T.
ATOMLEARN_INLINE void add_tile(double* slope, const float* tile, const double* changes,
                               Index width) {
    for (Index i = 0; i < width; ++i, tile += width) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (Index j = 0; j < width; ++j) sum += changes[j] * static_cast<double>(tile[j]);
        slope[i] += sum;
    }
}

// argmin over w of slope w + 1/2 bend (w - at)^2 + price |w|; over w >= 0 where not `is_signed`.
double least(double at, double slope, double bend, double price, bool is_signed) {
    const double there = bend * at - slope;
    if (there > price) return (there - price) / bend;
    return is_signed && there < -price ? (there + price) / bend : 0.0;
}

using Strip = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// slope: that of the quadratic at `weights`. Returns the sweeps: the last one moved no slope by
// more than `tolerance` times a price.
Index descend_quadratic(const std::vector<Strip>& strips, const Doubles& slope,
                        const Doubles& price, const OutDoubles& weights, double ridge,
                        bool is_signed, double tolerance, Index most) {
    const Index size = size_of(weights), count = static_cast<Index>(strips.size());
    const Index width = count > 0 ? size_of(strips[0], 1) : 1;
    bool fits = size_of(slope) == size && size_of(price) == size && count * width >= size;
    for (Index k = 0; k < count; ++k) {
        const Strip& strip = strips[as_size(k)];
        fits = fits && size_of(strip) == k + 1 && size_of(strip, 1) == width &&
               size_of(strip, 2) == width;
    }
    expect(fits, "strips, slope, price and weights do not fit together");
    double* w = weights.data();
    // The slopes of whole tiles: those beyond the last coefficient are not used.
    std::vector<double> g(as_size(count * width)), changes(as_size(width));
    std::copy_n(slope.data(), size, g.begin());
    const auto tile = [&](Index row, Index column) {
        return strips[as_size(row)].data() + column * width * width;
    };
    for (Index sweep = 1; sweep <= most; ++sweep) {
        double moved = 0.0;
        for (Index k = 0; k < count; ++k) {
            const Index first = k * width, end = std::min(first + width, size);
            double largest = 0.0;
            std::fill(changes.begin(), changes.end(), 0.0);
            for (Index j = first; j < end; ++j) {
                const double p = price.data()[j], slope_j = g[as_size(j)];
                if (w[j] == 0.0 && std::fabs(slope_j) <= p) continue;
                const Index row = (j - first) * width;
                const double bend = static_cast<double>(tile(k, k)[row + j - first]) + ridge;
                if (!(bend > 0.0)) continue;
                const double change = least(w[j], slope_j, bend, p, is_signed) - w[j];
                if (change == 0.0) continue;
                w[j] += change;
                changes[as_size(j - first)] = change;
                for (Index t = 0; t <= k; ++t)
                    vectorized<add_row>(g.data() + t * width, change, tile(k, t) + row, width);
                g[as_size(j)] += ridge * change;
                largest = std::max(largest, std::fabs(change) * bend / p);
            }
            moved = std::max(moved, largest);
            for (Index next = k + 1; next < count && largest > 0.0; ++next)
                vectorized<add_tile>(g.data() + next * width, tile(next, k), changes.data(), width);
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
