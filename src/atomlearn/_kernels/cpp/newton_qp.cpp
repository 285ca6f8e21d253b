// A step minimises the second-order model of the loss, the intercept minimised out, with the norm
// kept as it is; a search on the objective decides how far to go there. No certificate is formed:
// the caller prices the point.
#include "newton_qp.hpp"

#include <cmath>
#include <vector>

#include "active_set.hpp"
#include "blas.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

constexpr double kArmijo = 1e-4;
// Of the objective: a step that promises less is the last one.
constexpr double kRounding = 1e-13;
constexpr int kHalvings = 30;
constexpr Index kMostPivots = 100000;

ATOMLEARN_CLONES void scaled_less_mean(double* to, const double* from, double mean,
                                       const double* root, Index size) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) to[i] = (from[i] - mean) * root[i];
}

class Fit {
  public:
    Fit(const SmallProblem& problem, double* weights, double* shift, Index batch)
        : p_(problem),
          w_(weights),
          b_(shift),
          batch_(batch),
          linear_(as_size(p_.samples)),
          slope_(as_size(p_.samples)),
          curvature_(as_size(p_.samples)),
          move_(as_size(p_.samples)),
          scaled_(as_size(p_.samples * p_.count)),
          gram_(as_size(p_.count * p_.count)),
          factor_(as_size(p_.count * p_.count)),
          means_(as_size(p_.count)),
          gradient_(as_size(p_.count)),
          end_(as_size(p_.count)),
          order_(as_size(p_.count)) {}

    Index run(Index most) {
        std::fill(linear_.begin(), linear_.end(), *b_);
        for (Index j = 0; j < p_.count; ++j)
            if (w_[j] != 0.0) add_multiple(linear_.data(), w_[j], column(j), p_.samples);
        value_ = objective(linear_.data(), w_);
        Index steps = 0;
        bool last = false;
        while (!last && steps < most && std::isfinite(value_)) {
            differentiate();
            if (!(mass_ > 0.0)) break;
            model();
            if (!minimise_model()) break;
            const double promised = promise();
            last = !(promised < -kRounding * value_) || p_.loss == SmallLoss::squared;
            if (!(promised < 0.0) || !search(promised)) break;
            ++steps;
        }
        return steps;
    }

  private:
    const double* column(Index j) const { return p_.columns + j * p_.samples; }

    double gauge(const double* w) const {
        double total = 0.0;
        for (Index j = 0; j < p_.count; ++j) total += p_.price[j] * std::fabs(w[j]);
        return total;
    }

    double penalty(const double* w) const {
        const double g = gauge(w);
        return p_.level * g + 0.5 * p_.coupling * g * g + 0.5 * p_.ridge * dot(w, w, p_.count);
    }

    double objective(const double* linear, const double* w) const {
        double total = 0.0;
        for (Index i = 0; i < p_.samples; ++i) total += p_.sample_weight[i] * loss(i, linear[i]);
        return total + penalty(w);
    }

    double loss(Index i, double z) const {
        if (p_.loss == SmallLoss::squared) return 0.5 * (z - p_.target[i]) * (z - p_.target[i]);
        const double margin = p_.target[i] * z;
        if (p_.loss == SmallLoss::logistic)
            return std::log1p(std::exp(-std::fabs(margin))) + std::max(-margin, 0.0);
        const double short_of = std::max(1.0 - margin, 0.0);
        return 0.5 * short_of * short_of;
    }

    // First and second derivatives at every sample, and the sum of the second.
    void differentiate() {
        mass_ = 0.0;
        surplus_ = 0.0;
        for (Index i = 0; i < p_.samples; ++i) {
            const double s = p_.sample_weight[i], y = p_.target[i], z = linear_[as_size(i)];
            double first, second;
            if (p_.loss == SmallLoss::squared) {
                first = z - y;
                second = 1.0;
            } else if (p_.loss == SmallLoss::logistic) {
                const double small = std::exp(-std::fabs(z));
                const double share = 1.0 / (1.0 + small);
                first = -y * (y * z > 0.0 ? small * share : share);
                second = small * share * share;
            } else {
                const double short_of = std::max(1.0 - y * z, 0.0);
                first = -y * short_of;
                second = short_of > 0.0 ? 1.0 : 0.0;
            }
            slope_[as_size(i)] = s * first;
            curvature_[as_size(i)] = s * second;
            surplus_ += s * first;
            mass_ += s * second;
        }
    }

    // gram = A'DA and gradient = A'g + ridge w, of columns less their D-weighted means where there
    // is an intercept.
    void model() {
        const Index n = p_.samples, m = p_.count;
        for (Index j = 0; j < m; ++j) {
            at(means_, j) = p_.intercept ? dot(column(j), curvature_.data(), n) / mass_ : 0.0;
            at(gradient_, j) =
                dot(column(j), slope_.data(), n) - at(means_, j) * surplus_ + p_.ridge * w_[j];
        }
        for (double& d : curvature_) d = std::sqrt(d);
        for (Index j = 0; j < m; ++j)
            scaled_less_mean(scaled_.data() + j * n, column(j), at(means_, j), curvature_.data(),
                             n);
        if (blas::ready() && m * n > 1024) {
            blas::add_gram(m, n, 1.0, scaled_.data(), n, 0.0, gram_.data(), m);
        } else {
            for (Index j = 0; j < m; ++j)
                for (Index k = j; k < m; ++k)
                    gram_[as_size(j * m + k)] =
                        dot(scaled_.data() + j * n, scaled_.data() + k * n, n);
        }
        for (Index j = 0; j < m; ++j)
            for (Index k = j + 1; k < m; ++k) gram_[as_size(k * m + j)] = gram_[as_size(j * m + k)];
    }

    bool minimise_model() {
        const Index m = p_.count;
        std::copy(w_, w_ + m, end_.begin());
        const QuadraticProgram program{gram_.data(), m,        m,           gradient_.data(),
                                       true,         p_.price, p_.coupling, p_.ridge,
                                       p_.radius,    false,    p_.level,    p_.is_signed};
        ActiveFactor state{factor_.data(), m, order_.data(), 0, 0, 0.0};
        const QPOutcome outcome = active_set(program, state, end_.data(), batch_, kMostPivots);
        return outcome.status != QPStatus::not_finite && outcome.status != QPStatus::bad_state;
    }

    // The way there, and the decrease that the slopes at its beginning promise.
    double promise() {
        const Index n = p_.samples;
        turn_ = p_.intercept ? -surplus_ / mass_ : 0.0;
        for (Index j = 0; j < p_.count; ++j) turn_ -= at(means_, j) * (at(end_, j) - w_[j]);
        std::fill(move_.begin(), move_.end(), turn_);
        double ridge = 0.0;
        for (Index j = 0; j < p_.count; ++j) {
            const double change = at(end_, j) - w_[j];
            if (change != 0.0) add_multiple(move_.data(), change, column(j), n);
            ridge += p_.ridge * (w_[j] * change - 0.5 * (at(end_, j) + w_[j]) * change);
        }
        return dot(slope_.data(), move_.data(), n) + ridge + penalty(end_.data()) - penalty(w_);
    }

    // Armijo's rule; at the end of the whole way zeros are exact zeros.
    bool search(double promised) {
        const Index n = p_.samples;
        const std::vector<double> start(w_, w_ + p_.count);
        std::vector<double>& trial = slope_;  // not needed any more
        double length = 1.0;
        for (int halving = 0; halving < kHalvings; ++halving, length *= 0.5) {
            for (Index i = 0; i < n; ++i) at(trial, i) = at(linear_, i) + length * at(move_, i);
            if (halving > 0)
                for (Index j = 0; j < p_.count; ++j)
                    at(end_, j) = 0.5 * (at(end_, j) + start[as_size(j)]);
            const double now = objective(trial.data(), end_.data());
            if (now <= value_ + kArmijo * length * promised + 1e-14 * value_) {
                std::copy(end_.begin(), end_.end(), w_);
                *b_ += length * turn_;
                linear_.swap(trial);
                const bool lower = now < value_;
                value_ = now;
                return lower || halving == 0;
            }
        }
        return false;
    }

    static double& at(std::vector<double>& v, Index i) { return v[as_size(i)]; }

    const SmallProblem& p_;
    double* w_;
    double* b_;
    Index batch_;
    std::vector<double> linear_, slope_, curvature_, move_, scaled_, gram_, factor_, means_,
        gradient_, end_;
    std::vector<Index> order_;
    double value_ = kInfinity, mass_ = 0.0, surplus_ = 0.0, turn_ = 0.0;
};

}  // namespace

Index newton_qp(const SmallProblem& problem, double* weights, double* shift, Index batch,
                Index most) {
    return Fit(problem, weights, shift, batch).run(most);
}

}  // namespace atomlearn
