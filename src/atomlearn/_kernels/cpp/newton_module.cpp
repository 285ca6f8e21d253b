// The Python functions of newton_qp.hpp and ksupport_newton.hpp.
#include "bindings.hpp"
#include "ksupport_newton.hpp"
#include "newton_qp.hpp"

namespace atomlearn {
namespace {

// shift: in and out the intercept. Returns the number of steps.
Index newton_qp_of(const DoubleMatrix& columns, const Doubles& target, const Doubles& sample_weight,
                   int loss, const Doubles& price, double level, double coupling, double ridge,
                   double radius, bool is_signed, bool intercept, const OutDoubles& weights,
                   const OutDoubles& shift, Index batch, Index most) {
    const nb::gil_scoped_release release;
    const SmallProblem problem{columns.data(),
                               static_cast<Index>(columns.shape(0)),
                               static_cast<Index>(columns.shape(1)),
                               target.data(),
                               sample_weight.data(),
                               static_cast<SmallLoss>(loss),
                               price.data(),
                               level,
                               coupling,
                               ridge,
                               radius,
                               is_signed,
                               intercept};
    return newton_qp(problem, weights.data(), shift.data(), batch, most);
}

// Returns the number of steps.
Index ksupport_newton_of(const DoubleMatrix& data, bool gram, const Doubles& pull, Index k,
                         double level, bool squared, const OutDoubles& weights, Index most) {
    const nb::gil_scoped_release release;
    const SupportQuadratic problem{data.data(),
                                   static_cast<Index>(data.shape(0)),
                                   static_cast<Index>(data.shape(1)),
                                   gram,
                                   pull.data(),
                                   k,
                                   level,
                                   squared};
    return ksupport_newton(problem, weights.data(), most);
}

}  // namespace

void bind_newton(nb::module_& m) {
    m.def("newton_qp", &newton_qp_of, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg());
    m.def("ksupport_newton", &ksupport_newton_of, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg());
}

}  // namespace atomlearn
