// The Python side of pivoting.cpp.
#include "bindings.hpp"
#include "pivoting.hpp"

namespace atomlearn {
namespace {

// counts: in and out the coordinates in the factor; out the systems and the levels solved.
int path(const DoubleMatrix& gram, const Doubles& slope, const Doubles& price, double ridge,
         Index most, const Doubles& levels, const OutDoubleMatrix& factor,
         const OutPositions& order, const OutPositions& counts, const Doubles& start,
         const OutDoubleMatrix& rows) {
    const nb::gil_scoped_release release;
    const SignedQuadratic quadratic{gram.data(),  Index{gram.stride(0)}, size_of(start),
                                    slope.data(), price.data(),          ridge,
                                    most};
    SupportFactor state{factor.data(), size_of(factor, 1), order.data(), counts.data()[0]};
    const PivotedPath done =
        pivot_path(quadratic, levels.data(), size_of(levels), state, start.data(), rows.data());
    counts.data()[0] = state.count;
    counts.data()[1] = done.systems;
    counts.data()[2] = done.levels;
    return static_cast<int>(done.status);
}

}  // namespace

void bind_pivoting(nb::module_& m) {
    define(m, "pivot_path", &path);
}

}  // namespace atomlearn
