// A step minimises the second-order model of the loss over the columns in use and those that want
// in, the intercept minimised out, with the norm kept as it is; a search on the objective decides
// how far to go there. The model's Hessian is kept, and extended by columns, while curvatures stay
// nearly what they were. No certificate is formed: the caller prices the point.
// [Lee, Sun, Saunders 2014; Yuan, Ho, Lin 2012, for the models of few columns]
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "active_set.hpp"
#include "bindings.hpp"
#include "blas.hpp"
#include "few_columns.hpp"
#include "newton.hpp"
#include "pivoting.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

constexpr Index kMostPivots = 100000;
// As many columns as this part of those in use may enter at a time.
constexpr Index kShare = 16;
// A Hessian is kept while curvatures differ by less than this share of their sum.
constexpr double kAlike = 0.1;
// And while a step with it promises less than this share of what the step before did.
constexpr double kContraction = 0.25;
// The least damping: after a step that was cut short, and before there is none again.
constexpr double kFirstDamping = 1e-4;
// Models of more columns, or of so many multiplications to make, are left to other methods.
constexpr Index kMostColumns = 10000;
constexpr double kMostWork = 2e10;

// f(z), a sum over samples, by functions of Python, which read the point and write the derivatives
// where both see them. `smoothness` bounds the second derivative for a unit weight, infinity where
// nothing does.
struct PythonLoss {
    nb::callable value_, differentiate_, bend_;
    OutDoubles point, first, second;
    Doubles weight;
    double smoothness;
    bool quadratic;

    Index count() const { return size_of(point); }
    double value(const double* z) const {
        std::copy_n(z, count(), point.data());
        const nb::gil_scoped_acquire acquire;
        return nb::cast<double>(value_());
    }
    // f', and the diagonal f''.
    void differentiate(const double* z, double* slope, double* curvature) const {
        std::copy_n(z, count(), point.data());
        {
            const nb::gil_scoped_acquire acquire;
            differentiate_();
        }
        std::copy_n(first.data(), count(), slope);
        std::copy_n(second.data(), count(), curvature);
    }
    // f(z) + f*(share f'(z)) - share <f'(z), z> at the z of the last `differentiate`.
    double bend(double share) const {
        const nb::gil_scoped_acquire acquire;
        return nb::cast<double>(bend_(share));
    }
};

// min over c, b of  f(A c + b) + ridge/2 c'Mc + level g + coupling/2 g^2 with g = p'|c| (over
// c >= 0 where not `is_signed`), and g <= radius where that is finite. No metric: M is I.
struct PricedProblem {
    const FewColumns& columns;
    Index count;
    const PythonLoss& loss;
    const double* metric;
    const double* price;
    double level;
    double coupling;
    double ridge;
    double radius;
    bool is_signed;
    bool intercept;
};

// The Hessian of the last model, kept for the next: of the columns `chosen`, less their means, at
// curvatures that were `curvature` before damping, rows `stride` apart, and the factor of those of
// them that its minimum used. Valid as long as columns keep their numbers.
struct KeptHessian {
    using Square = std::unique_ptr<double[]>;  // what is not written costs nothing
    std::vector<Index> chosen, order;
    std::vector<double> curvature, damped, means;
    Square gram, factor;
    Index stride = 0, factored = 0;
    double mass = 0.0, damping = 0.0, ridge = 0.0;
    bool intercept = false;
};

struct NewtonLimits {
    double gap;      // ends where about so much is left, as the kernel sees it; 0: never
    Index steps;     // at most so many
    double seconds;  // ends after so many
};

// Moves `weights`, feasible, and `shift`, the intercept, until the gap is small, a step promises no
// decrease beyond rounding, or a limit is met. The point is never worse than the start.
class Fit {
  public:
    Fit(const PricedProblem& problem, double* weights, double* shift, const NewtonLimits& limits,
        KeptHessian& kept)
        : p_(problem),
          n_(problem.loss.count()),
          w_(weights),
          b_(shift),
          limits_(limits),
          linear_(as_size(n_)),
          slope_(as_size(n_)),
          curvature_(as_size(n_)),
          move_(as_size(n_)),
          trial_(as_size(n_)),
          scores_(as_size(p_.count)),
          k_(kept),
          place_(as_size(p_.count), -1) {
        bool mine = k_.intercept == p_.intercept && as_size(n_) == k_.curvature.size();
        for (const Index j : k_.chosen) mine = mine && j < p_.count;
        mine = mine && (p_.metric == nullptr || k_.ridge == p_.ridge);
        if (!mine) k_ = KeptHessian{};
        k_.intercept = p_.intercept;
        if (k_.ridge != p_.ridge) k_.factored = 0;
        k_.ridge = p_.ridge;
        damping_ = mine ? k_.damping : 0.0;
        for (std::size_t i = 0; i < k_.chosen.size(); ++i)
            place_[as_size(k_.chosen[i])] = static_cast<Index>(i);
    }

    Index run() {
        std::fill(linear_.begin(), linear_.end(), *b_);
        for (Index j = 0; j < p_.count; ++j)
            if (w_[j] != 0.0) p_.columns.add(j, w_[j], linear_.data());
        value_ = p_.loss.value(linear_.data()) + penalty(gauge(w_), square(w_));
        Index steps = 0;
        int idle = 0;
        while (steps < limits_.steps && idle < kPatience && std::isfinite(value_)) {
            p_.loss.differentiate(linear_.data(), slope_.data(), curvature_.data());
            p_.columns.scores(slope_.data(), scores_.data());
            add_ridge(w_, scores_.data());
            if (limits_.gap > 0.0 && gap() <= limits_.gap) break;
            if (spent() >= limits_.seconds || !model()) break;
            double promised = minimise_model();
            if (promised == kInfinity && damping_ < 1.0 && !is_quadratic()) {
                // A model without a minimum: of more curvature it has one.
                more_damping();
                continue;
            }
            if (!(promised < -kAtRest * value_) && !fresh_ && !is_quadratic()) {
                // The last digits are those of the curvature here.
                k_.damped.clear();
                if (!model()) break;
                promised = minimise_model();
            }
            const bool last = !(promised < -kAtRest * value_);
            const double before = value_;
            if (!(promised < 0.0)) break;
            const double length = search(promised);
            if (length > 0.0) ++steps;
            if (last || (length == 0.0 && fresh_ && damping_ >= 1.0)) break;
            idle = value_ < before * (1.0 - kAtRest) ? 0 : idle + 1;
            follow(length, promised);
        }
        return steps;
    }

  private:
    double spent() const {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
        return passed.count();
    }
    bool is_quadratic() const { return p_.loss.quadratic; }
    // What inner methods add to the diagonal: a metric is part of the Hessian that they get.
    double diagonal() const { return p_.metric == nullptr ? p_.ridge : 0.0; }

    double gauge(const double* w) const {
        double total = 0.0;
        for (Index j = 0; j < p_.count; ++j) total += p_.price[j] * std::fabs(w[j]);
        return total;
    }
    // y += ridge M w.
    void add_ridge(const double* w, double* y) const {
        for (Index j = 0; p_.ridge > 0.0 && j < p_.count; ++j) {
            if (w[j] == 0.0) continue;
            if (p_.metric == nullptr)
                y[j] += p_.ridge * w[j];
            else
                add_multiple(y, p_.ridge * w[j], p_.metric + j * p_.count, p_.count);
        }
    }
    // w'M w.
    double square(const double* w) const {
        if (!(p_.ridge > 0.0)) return 0.0;
        if (p_.metric == nullptr) return dot(w, w, p_.count);
        double total = 0.0;
        for (Index j = 0; j < p_.count; ++j)
            if (w[j] != 0.0) total += w[j] * dot(p_.metric + j * p_.count, w, p_.count);
        return total;
    }
    double penalty(double g, double square) const {
        return p_.level * g + 0.5 * p_.coupling * g * g + 0.5 * p_.ridge * square;
    }

    // What the smooth part pulls column j with, per unit of its price.
    double pull(Index j) const {
        const double z = -scores_[as_size(j)];
        return (p_.is_signed ? std::fabs(z) : z) / p_.price[j];
    }

    // The gap of the dual point -f', scaled into the unit ball of the polar, to second order.
    double gap() const {
        double polar = 0.0, along = 0.0, g = 0.0;
        for (Index j = 0; j < p_.count; ++j) {
            polar = std::max(polar, pull(j));
            along -= w_[j] * scores_[as_size(j)];
            g += p_.price[j] * std::fabs(w_[j]);
        }
        if (p_.radius < kInfinity) return p_.radius * polar - along;
        if (p_.coupling > 0.0)
            return 0.5 * p_.coupling * g * g + 0.5 * polar * polar / p_.coupling - along;
        const double share = polar > p_.level ? p_.level / polar : 1.0;
        const double open = p_.level * g - share * along;
        // What is open already is enough to go on.
        return share < 1.0 && open <= limits_.gap ? open + p_.loss.bend(share) : open;
    }

    // The price of a unit of the gauge at this point; in the ball, only where its bound is reached.
    double cost() const {
        if (p_.radius < kInfinity) {
            double along = 0.0, g = 0.0;
            for (Index j = 0; j < p_.count; ++j) {
                along -= w_[j] * scores_[as_size(j)];
                g += p_.price[j] * std::fabs(w_[j]);
            }
            return g < p_.radius * (1.0 - 1e-12) ? 0.0 : along / p_.radius;
        }
        return p_.coupling > 0.0 ? p_.coupling * gauge(w_) : p_.level;
    }

    // The columns that want in, the most violated ones where they are many.
    void find_entering() {
        entering_.clear();
        Index used = 0;
        for (Index j = 0; j < p_.count; ++j) used += w_[j] != 0.0;
        const double least = cost();
        for (Index j = 0; j < p_.count; ++j)
            if (place_[as_size(j)] < 0 && (w_[j] != 0.0 || pull(j) > least)) entering_.push_back(j);
        const Index most = std::max(kEntering, used / kShare);
        Index wanting = 0;
        for (const Index j : entering_) wanting += w_[j] == 0.0;
        if (wanting <= most) return;
        std::stable_sort(entering_.begin(), entering_.end(), [&](Index a, Index b) {
            const bool in_use = w_[a] != 0.0, other = w_[b] != 0.0;
            return in_use != other ? in_use : in_use ? a < b : pull(a) > pull(b);
        });
        entering_.resize(as_size(static_cast<Index>(entering_.size()) - wanting + most));
    }

    // Whether the Hessian at hand will do here.
    bool is_alike() const {
        if (k_.damped.empty() || damping_ != k_.damping) return false;
        if (is_quadratic()) return k_.curvature == curvature_;
        // Of few columns a new one costs no more than the rest of a step.
        if (static_cast<Index>(k_.chosen.size()) <= kEntering) return false;
        double change = 0.0, total = 0.0;
        for (Index i = 0; i < n_; ++i) {
            change += std::fabs(at(curvature_, i) - at(k_.curvature, i));
            total += at(k_.curvature, i);
        }
        return change <= kAlike * total;
    }

    // H over the chosen columns: A'DA of columns less their D-weighted means where there is an
    // intercept. False where nothing has curvature, or the model would be too large.
    bool model() {
        fresh_ = !is_alike();
        if (fresh_) {
            for (const Index j : k_.chosen) place_[as_size(j)] = -1;
            k_.chosen.clear();
            k_.means.clear();
            k_.factored = 0;
            k_.curvature = curvature_;
            damp();
            while (!(k_.mass > 0.0) && damping_ < 1.0 && !is_quadratic()) {
                more_damping();  // straight everywhere
                damp();
            }
            if (!(k_.mass > 0.0)) return false;
        }
        surplus_ = 0.0;
        for (const double s : slope_) surplus_ += s;
        find_entering();
        const Index known = static_cast<Index>(k_.chosen.size());
        const Index size = known + static_cast<Index>(entering_.size());
        const double made =
            static_cast<double>(n_) * static_cast<double>(size) * static_cast<double>(size - known);
        if (size == 0 || size > kMostColumns || made > kMostWork) return false;
        extend(known, size);
        return true;
    }

    void damp() {
        k_.damped = curvature_;
        k_.damping = damping_;
        const double* s = p_.loss.weight.data();
        double most = p_.loss.smoothness;
        if (damping_ > 0.0 && !std::isfinite(most)) {  // the largest there is
            most = 0.0;
            for (Index i = 0; i < n_; ++i)
                if (s[i] > 0.0) most = std::max(most, at(curvature_, i) / s[i]);
            if (most == 0.0) most = 1.0;
        }
        for (Index i = 0; damping_ > 0.0 && i < n_; ++i) at(k_.damped, i) += damping_ * most * s[i];
        k_.mass = 0.0;
        for (const double d : k_.damped) k_.mass += d;
    }

    // Makes room for those entering, and keeps of the others those in use and in the factor.
    Index keep_used() {
        std::vector<Index> kept, where(k_.chosen.size(), -1);
        std::vector<char> factored(k_.chosen.size(), 0);
        for (Index i = 0; i < k_.factored; ++i) factored[as_size(k_.order[as_size(i)])] = 1;
        for (std::size_t i = 0; i < k_.chosen.size(); ++i) {
            if (w_[k_.chosen[i]] == 0.0 && factored[i] == 0) continue;
            where[i] = static_cast<Index>(kept.size());
            kept.push_back(static_cast<Index>(i));
        }
        const Index count = static_cast<Index>(kept.size());
        const Index size = count + static_cast<Index>(entering_.size());
        const Index old = k_.stride, stride = std::min(p_.count, 2 * size);
        KeptHessian::Square gram(new double[as_size(stride * stride)]),
            factor(new double[as_size(stride * stride)]);
        for (Index r = 0; r < count; ++r) {
            const double* from = k_.gram.get() + kept[as_size(r)] * old;
            for (Index c = 0; c < count; ++c)
                gram[as_size(r * stride + c)] = from[kept[as_size(c)]];
        }
        for (Index r = 0; r < k_.factored; ++r)
            std::copy_n(k_.factor.get() + r * old + r, k_.factored - r,
                        factor.get() + r * stride + r);
        k_.gram.swap(gram);
        k_.factor.swap(factor);
        k_.order.resize(std::max(k_.order.size(), as_size(stride)));
        k_.stride = stride;
        for (Index i = 0; i < k_.factored; ++i)
            k_.order[as_size(i)] = where[as_size(k_.order[as_size(i)])];
        for (const Index j : k_.chosen) place_[as_size(j)] = -1;
        for (Index i = 0; i < count; ++i) {
            const auto from = as_size(kept[as_size(i)]);
            k_.chosen[as_size(i)] = k_.chosen[from];
            k_.means[as_size(i)] = k_.means[from];
            place_[as_size(k_.chosen[as_size(i)])] = i;
        }
        k_.chosen.resize(as_size(count));
        k_.means.resize(as_size(count));
        return count;
    }

    void extend(Index known, Index size) {
        if (size == known) return;
        if (size > k_.stride) {
            known = keep_used();
            size = known + static_cast<Index>(entering_.size());
        }
        for (const Index j : entering_) {
            place_[as_size(j)] = static_cast<Index>(k_.chosen.size());
            k_.chosen.push_back(j);
            k_.means.push_back(p_.intercept ? p_.columns.score(j, k_.damped.data()) / k_.mass
                                            : 0.0);
        }
        p_.columns.gram(k_.chosen, known, k_.damped.data(),
                        p_.intercept ? k_.means.data() : nullptr, k_.gram.get(), k_.stride);
        if (p_.metric == nullptr) return;
        for (Index r = known; r < size; ++r) {
            const double* row = p_.metric + k_.chosen[as_size(r)] * p_.count;
            for (Index c = 0; c < size; ++c) {
                const double more = p_.ridge * row[k_.chosen[as_size(c)]];
                k_.gram[as_size(r * k_.stride + c)] += more;
                if (c < known) k_.gram[as_size(c * k_.stride + r)] += more;
            }
        }
    }

    // Finds end_ over the chosen columns and the way there; returns the decrease that the slopes
    // at its beginning promise, infinity where there is no minimum.
    double minimise_model() {
        const Index size = static_cast<Index>(k_.chosen.size());
        gradient_.resize(as_size(size));
        start_.resize(as_size(size));
        price_.resize(as_size(size));
        end_.resize(as_size(size));
        for (Index i = 0; i < size; ++i) {
            const Index j = k_.chosen[as_size(i)];
            at(start_, i) = w_[j];
            at(price_, i) = p_.price[j];
            at(gradient_, i) = scores_[as_size(j)] - at(k_.means, i) * surplus_;
        }
        if (!by_signs(size) && !by_active_set(size)) return kInfinity;
        return promise(size);
    }

    // All exchanges of signs at once, where the norm is a sum of prices.
    bool by_signs(Index size) {
        if (!(p_.level > 0.0) || p_.coupling > 0.0 || p_.radius < kInfinity) return false;
        Index live = 0;
        for (const double d : k_.damped) live += d > 0.0;
        const Index most = p_.ridge > 0.0 ? size : std::min(size, live - p_.intercept);
        const SignedQuadratic quadratic{k_.gram.get(),
                                        k_.stride,
                                        size,
                                        gradient_.data(),
                                        price_.data(),
                                        diagonal(),
                                        std::max<Index>(most, 1),
                                        p_.is_signed};
        SupportFactor state{k_.factor.get(), k_.stride, k_.order.data(), k_.factored};
        const bool solved =
            pivot_path(quadratic, &p_.level, 1, state, start_.data(), end_.data()) == 1;
        k_.factored = state.count;
        return solved;
    }

    bool by_active_set(Index size) {
        k_.factored = 0;
        end_ = start_;
        const QuadraticProgram program{k_.gram.get(), k_.stride,     size,        gradient_.data(),
                                       true,          price_.data(), p_.coupling, diagonal(),
                                       p_.radius,     false,         p_.level,    p_.is_signed};
        ActiveFactor state{k_.factor.get(), k_.stride, k_.order.data(), 0, 0, 0.0};
        const QPOutcome outcome = active_set(program, state, end_.data(), kEntering, kMostPivots);
        return outcome.status != QPStatus::not_finite && outcome.status != QPStatus::bad_state;
    }

    double promise(Index size) {
        turn_ = p_.intercept ? -surplus_ / k_.mass : 0.0;
        for (Index i = 0; i < size; ++i) turn_ -= at(k_.means, i) * (at(end_, i) - at(start_, i));
        std::fill(move_.begin(), move_.end(), turn_);
        double along = turn_ * surplus_, longer = 0.0;
        gauge_ = 0.0;
        for (Index i = 0; i < size; ++i) {
            const Index j = k_.chosen[as_size(i)];
            const double change = at(end_, i) - at(start_, i);
            if (change != 0.0) p_.columns.add(j, change, move_.data());
            along += scores_[as_size(j)] * change;
            longer += p_.price[j] * (std::fabs(at(end_, i)) - std::fabs(at(start_, i)));
            gauge_ += p_.price[j] * std::fabs(at(start_, i));
        }
        return along + (p_.level + p_.coupling * (gauge_ + 0.5 * longer)) * longer;
    }

    // Armijo's rule; returns the length of the step, 0 where there is none. At the end of the whole
    // way zeros are exact zeros.
    double search(double promised) {
        const Index size = static_cast<Index>(k_.chosen.size());
        double length = 1.0;
        for (int halving = 0; halving < kHalvings; ++halving, length *= 0.5) {
            double g = 0.0;
            reached_.assign(as_size(p_.count), 0.0);
            for (Index i = 0; i < size; ++i) {
                if (halving > 0) at(end_, i) = 0.5 * (at(end_, i) + at(start_, i));
                g += at(price_, i) * std::fabs(at(end_, i));
                at(reached_, k_.chosen[as_size(i)]) = at(end_, i);
            }
            for (Index i = 0; i < n_; ++i) at(trial_, i) = at(linear_, i) + length * at(move_, i);
            const double now = p_.loss.value(trial_.data()) + penalty(g, square(reached_.data()));
            if (!(now <= value_ + kArmijo * length * promised + 1e-14 * std::fabs(value_)))
                continue;
            if (!(now < value_) && halving > 0) return 0.0;
            for (Index i = 0; i < size; ++i) w_[k_.chosen[as_size(i)]] = at(end_, i);
            *b_ += length * turn_;
            linear_.swap(trial_);
            value_ = now;
            return length;
        }
        return 0.0;
    }

    void more_damping() { damping_ = std::min(1.0, std::max(10.0 * damping_, kFirstDamping)); }

    // What a step's length tells of the model.
    void follow(double length, double promised) {
        if (length < 0.25)
            more_damping();
        else if (length == 1.0)
            damping_ = damping_ > kFirstDamping ? 0.1 * damping_ : 0.0;
        const bool slow = !fresh_ && promised < kContraction * promised_;
        if (!is_quadratic() && (slow || length < 1.0)) k_.damped.clear();
        promised_ = promised;
    }

    static double& at(std::vector<double>& v, Index i) { return v[as_size(i)]; }
    static double at(const std::vector<double>& v, Index i) { return v[as_size(i)]; }

    const PricedProblem& p_;
    Index n_;
    double* w_;
    double* b_;
    const NewtonLimits& limits_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::vector<double> linear_, slope_, curvature_, move_, trial_, scores_;
    KeptHessian& k_;
    // Where a column is among those of the model, and its quadratic program.
    std::vector<Index> place_, entering_;
    std::vector<double> gradient_, start_, price_, end_, reached_;
    bool fresh_ = true;
    double value_ = kInfinity, surplus_ = 0.0, turn_ = 0.0, gauge_ = 0.0;
    double damping_ = 0.0, promised_ = 0.0;
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

// level, coupling, ridge, radius, is_signed, intercept
using Prices = std::tuple<double, double, double, double, bool, bool>;

// shift: in and out the intercept; seconds: ends after so many. Returns the number of steps.
Index run(const FewColumns& columns, const PythonLoss& loss, const Doubles& price,
          const Prices& prices, const Doubles& metric, double gap, Index steps, double seconds,
          HeldHessian& kept, const OutDoubles& weights, const OutDoubles& shift) {
    const auto& [level, coupling, ridge, radius, is_signed, intercept] = prices;
    expect(size_of(price) == size_of(weights), "weights and price must have an entry a column");
    const PricedProblem problem{columns,      size_of(weights),
                                loss,         size_of(metric) ? metric.data() : nullptr,
                                price.data(), level,
                                coupling,     ridge,
                                radius,       is_signed,
                                intercept};
    Lent hessian(kept);
    const NewtonLimits limits{gap, steps, seconds};
    return Fit(problem, weights.data(), shift.data(), limits, hessian.get()).run();
}

Index newton_qp_dense(const DoubleMatrix& columns, const PythonLoss& loss, const Doubles& price,
                      const Prices& prices, const Doubles& metric, double gap, Index steps,
                      double seconds, HeldHessian& kept, const OutDoubles& weights,
                      const OutDoubles& shift) {
    expect(size_of(columns) == loss.count() && size_of(columns, 1) == size_of(weights),
           "columns, target and weights do not fit together");
    const auto few = dense_columns(columns.data(), size_of(columns), size_of(columns, 1));
    return run(*few, loss, price, prices, metric, gap, steps, seconds, kept, weights, shift);
}

Index newton_qp_csc(const std::tuple<Doubles, Vector, Vector>& columns, const PythonLoss& loss,
                    const Doubles& price, const Prices& prices, const Doubles& metric, double gap,
                    Index steps, double seconds, HeldHessian& kept, const OutDoubles& weights,
                    const OutDoubles& shift) {
    const auto& [data, indices, indptr] = columns;
    return by_index(indices, [&](const auto* rows) {
        using Row = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
        const auto few =
            compressed_columns<Row>(data.data(), rows, static_cast<const Row*>(indptr.data()),
                                    loss.count(), size_of(weights));
        return run(*few, loss, price, prices, metric, gap, steps, seconds, kept, weights, shift);
    });
}

}  // namespace

void bind_newton(nb::module_& m) {
    nb::class_<HeldHessian>(m, "KeptHessian").def(nb::init<>());
    nb::class_<PythonLoss>(m, "PythonLoss")
        .def(nb::init<nb::callable, nb::callable, nb::callable, OutDoubles, OutDoubles, OutDoubles,
                      Doubles, double, bool>());
    define(m, "newton_qp", &newton_qp_dense);
    define(m, "newton_qp_csc", &newton_qp_csc);
}

}  // namespace atomlearn
