// The Python functions of newton_qp.hpp and ksupport_newton.hpp.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <type_traits>

#include "bindings.hpp"
#include "ksupport_newton.hpp"
#include "newton_qp.hpp"

namespace atomlearn {
namespace {

// Asks Python now and then whether there is an interrupt, and the clock whether there is time.
class Watch {
  public:
    explicit Watch(double seconds) : seconds_(seconds) {}
    bool operator()() {
        const double now = elapsed();
        if (now > seconds_) return false;
        if (now < heard_ + 0.2) return true;
        heard_ = now;
        const nb::gil_scoped_acquire acquire;
        interrupted_ = PyErr_CheckSignals() != 0;
        return !interrupted_;
    }
    bool interrupted() const { return interrupted_; }

  private:
    double elapsed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    }
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    double seconds_, heard_ = 0.0;
    bool interrupted_ = false;
};

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

using Prices = std::tuple<double, double, double, double, bool, bool>;
using Limits = std::tuple<double, Index, Index, Index, double, double>;
using Kind = std::tuple<int, double, double, double>;

// kind: the loss, and Huber's slopes: low, high, width; prices: level, coupling, ridge, radius,
// is_signed, intercept; limits: gap, batch, steps, columns, work, seconds; shift: in and out the
// intercept. Returns the number of steps.
Index run(const FewColumns& columns, const Doubles& target, const Doubles& sample_weight,
          const Kind& kind, const Doubles& price, const Prices& prices, const Limits& limits,
          HeldHessian& kept, const OutDoubles& weights, const OutDoubles& shift) {
    const auto& [level, coupling, ridge, radius, is_signed, intercept] = prices;
    const auto& [gap, batch, steps, most_columns, work, seconds] = limits;
    const auto& [loss, low, high, width] = kind;
    const Samples samples{target.data(),
                          sample_weight.data(),
                          size_of(target),
                          static_cast<SampleLoss>(loss),
                          {low, high, width}};
    const PricedProblem problem{columns, size_of(weights), samples,   price.data(), level, coupling,
                                ridge,   radius,           is_signed, intercept};
    Watch watch(seconds);
    Lent hessian(kept);
    Index made = 0;
    {
        const nb::gil_scoped_release release;
        made = newton_qp(problem, weights.data(), shift.data(),
                         {gap, batch, steps, most_columns, work, [&] { return watch(); }},
                         hessian.get());
    }
    if (watch.interrupted()) throw nb::python_error();
    return made;
}

Index newton_qp_dense(const DoubleMatrix& columns, const Doubles& target,
                      const Doubles& sample_weight, const Kind& kind, const Doubles& price,
                      const Prices& prices, const Limits& limits, HeldHessian& kept,
                      const OutDoubles& weights, const OutDoubles& shift) {
    const auto few = dense_columns(columns.data(), size_of(columns), size_of(columns, 1));
    return run(*few, target, sample_weight, kind, price, prices, limits, kept, weights, shift);
}

Index newton_qp_csc(const Doubles& data, const Vector& indices, const Vector& indptr,
                    const Doubles& target, const Doubles& sample_weight, const Kind& kind,
                    const Doubles& price, const Prices& prices, const Limits& limits,
                    HeldHessian& kept, const OutDoubles& weights, const OutDoubles& shift) {
    return by_index(indices, [&](const auto* rows) {
        using Row = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
        const auto few =
            compressed_columns<Row>(data.data(), rows, static_cast<const Row*>(indptr.data()),
                                    size_of(target), size_of(weights));
        return run(*few, target, sample_weight, kind, price, prices, limits, kept, weights, shift);
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
    define(m, "newton_qp", &newton_qp_dense);
    define(m, "newton_qp_csc", &newton_qp_csc);
    define(m, "ksupport_newton", &ksupport_newton_of);
}

}  // namespace atomlearn
