// The Python functions of newton_qp.hpp and ksupport_newton.hpp.
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <type_traits>

#include "bindings.hpp"
#include "ksupport_newton.hpp"
#include "newton_qp.hpp"

namespace atomlearn {
namespace {

// What Python holds of a Hessian; ``taken`` while a call works on it.
struct HeldHessian {
    KeptHessian hessian;
    std::atomic_flag taken;
};

// A Hessian for one call: the held one, or a new one where another thread works on that.
class Lent {
  public:
    explicit Lent(HeldHessian& held) : held_(held), mine_(!held.taken.test_and_set()) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        if (mine_) held_.taken.clear();
    }
    KeptHessian& get() { return mine_ ? held_.hessian : new_; }

  private:
    HeldHessian& held_;
    KeptHessian new_;
    bool mine_;
};

// level, coupling, ridge, radius, is_signed, intercept
using Prices = std::tuple<double, double, double, double, bool, bool>;

// A loss of Python: its functions read the point, and write the derivatives, where both see them.
struct PythonLoss {
    nb::callable value, differentiate, bend;
    OutDoubles point, first, second;
    Doubles weight;
    double smoothness;
    bool quadratic;
};

SampleLoss sample_loss(const PythonLoss& of) {
    const Index n = static_cast<Index>(of.point.shape(0));
    return {n,
            of.weight.data(),
            of.smoothness,
            of.quadratic,
            [&of, n](const double* z) {
                std::copy_n(z, n, of.point.data());
                const nb::gil_scoped_acquire acquire;
                return nb::cast<double>(of.value());
            },
            [&of, n](const double* z, double* first, double* second) {
                std::copy_n(z, n, of.point.data());
                {
                    const nb::gil_scoped_acquire acquire;
                    of.differentiate();
                }
                std::copy_n(of.first.data(), n, first);
                std::copy_n(of.second.data(), n, second);
            },
            [&of](double share) {
                const nb::gil_scoped_acquire acquire;
                return nb::cast<double>(of.bend(share));
            }};
}

// shift: in and out the intercept; seconds: ends after so many. Returns the number of steps.
Index run(const FewColumns& columns, const PythonLoss& python_loss, const Doubles& price,
          const Prices& prices, const Doubles& metric, double gap, Index steps, double seconds,
          HeldHessian& kept, const OutDoubles& weights, const OutDoubles& shift) {
    const auto& [level, coupling, ridge, radius, is_signed, intercept] = prices;
    const SampleLoss loss = sample_loss(python_loss);
    const PricedProblem problem{columns,      static_cast<Index>(weights.shape(0)),
                                loss,         metric.shape(0) > 0 ? metric.data() : nullptr,
                                price.data(), level,
                                coupling,     ridge,
                                radius,       is_signed,
                                intercept};
    const auto begun = std::chrono::steady_clock::now();
    const auto going = [&] {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
        return spent.count() < seconds;
    };
    Lent hessian(kept);
    const nb::gil_scoped_release release;
    return newton_qp(problem, weights.data(), shift.data(), {gap, steps, going}, hessian.get());
}

Index newton_qp_dense(const DoubleMatrix& columns, const PythonLoss& loss, const Doubles& price,
                      const Prices& prices, const Doubles& metric, double gap, Index steps,
                      double seconds, HeldHessian& kept, const OutDoubles& weights,
                      const OutDoubles& shift) {
    const auto few = dense_columns(columns.data(), static_cast<Index>(columns.shape(0)),
                                   static_cast<Index>(columns.shape(1)));
    return run(*few, loss, price, prices, metric, gap, steps, seconds, kept, weights, shift);
}

using Compressed = std::tuple<Doubles, Vector, Vector>;

Index newton_qp_csc(const Compressed& columns, const PythonLoss& loss, const Doubles& price,
                    const Prices& prices, const Doubles& metric, double gap, Index steps,
                    double seconds, HeldHessian& kept, const OutDoubles& weights,
                    const OutDoubles& shift) {
    const auto& [data, indices, indptr] = columns;
    return by_index(indices, [&](const auto* rows) {
        using Row = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
        const auto few = compressed_columns<Row>(
            data.data(), rows, static_cast<const Row*>(indptr.data()),
            static_cast<Index>(loss.point.shape(0)), static_cast<Index>(weights.shape(0)));
        return run(*few, loss, price, prices, metric, gap, steps, seconds, kept, weights, shift);
    });
}

// Returns the number of steps.
Index ksupport_newton_of(const DoubleMatrix& data, bool gram, const Doubles& pull, Index k,
                         double level, bool squared, const OutDoubles& weights, Index most) {
    const nb::gil_scoped_release release;
    const SupportQuadratic problem{data.data(), size_of(data), size_of(data, 1), gram, pull.data(),
                                   k,           level,         squared};
    return ksupport_newton(problem, weights.data(), most);
}

}  // namespace

void bind_newton(nb::module_& m) {
    nb::class_<HeldHessian>(m, "KeptHessian").def(nb::init<>());
    nb::class_<PythonLoss>(m, "PythonLoss")
        .def(nb::init<nb::callable, nb::callable, nb::callable, OutDoubles, OutDoubles, OutDoubles,
                      Doubles, double, bool>());
    define(m, "newton_qp", &newton_qp_dense);
    define(m, "newton_qp_csc", &newton_qp_csc);
    define(m, "ksupport_newton", &ksupport_newton_of);
}

}  // namespace atomlearn
