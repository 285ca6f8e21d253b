// The Python side of pivoting.cpp.
#include "bindings.hpp"
#include "pivoting.hpp"

namespace atomlearn {
namespace {

// counts: in and out the coordinates in the factor; out the systems solved.
int signs(const DoubleMatrix& gram, const Doubles& slope, const Doubles& price, double ridge,
          Index most, const OutDoubleMatrix& factor, const OutPositions& order,
          const OutPositions& counts, const OutDoubles& weights) {
    const nb::gil_scoped_release release;
    const SignedQuadratic quadratic{
        gram.data(),  Index{gram.stride(0)}, static_cast<Index>(weights.shape(0)),
        slope.data(), price.data(),          ridge,
        most};
    SupportFactor state{factor.data(), static_cast<Index>(factor.shape(1)), order.data(),
                        counts.data()[0]};
    const PivotOutcome outcome = pivot_signs(quadratic, state, weights.data());
    counts.data()[0] = state.count;
    counts.data()[1] = outcome.systems;
    return static_cast<int>(outcome.status);
}

}  // namespace

void bind_pivoting(nb::module_& m) {
    m.def("pivot_signs", &signs, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace atomlearn
