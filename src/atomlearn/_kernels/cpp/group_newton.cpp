// With t >= 0 the scalings, phi(t) = min over u of 1/2 ||target - B u||^2 + 1/2 sum ||u_g||^2 / t_g
// + 1/2 sum limit_g^2 t_g has the gradient (limit_g^2 - ||q_g||^2) / 2 and the Hessian V'P V of
// RidgeSystem. A step minimises the quadratic model over t >= 0, with the right side of the secular
// equation 1 / ||q_g|| = 1 / limit_g first, and that of Newton where it does not descend.
#include "group_newton.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "active_set.hpp"
#include "bindings.hpp"
#include "group_sweeps.hpp"
#include "newton.hpp"
#include "pivoting.hpp"
#include "ridge_systems.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

enum class NewtonStatus : int {
    reached = 0,
    step_limit = 1,  // or that of the work
    no_descent = 2,  // rounding, or a system without a factor
    not_finite = 3
};

struct NewtonOutcome {
    NewtonStatus status = NewtonStatus::step_limit;
    Index steps = 0;
    double gap = kInfinity;
};

// Minimises f(A w) + sum_g limit_g ||u_g|| over w = sum of the u_g. On any status `u`, an entry a
// member, is the point of least gap: u_g = t_g slopes over the members of g.
class Descent {
  public:
    Descent(const LeastSquares& loss, const Groups& groups, const double* limit, double* u,
            double* scalings)
        : groups_(groups),
          limit_(limit),
          u_(u),
          best_t_(scalings),
          system_(ridge_system(loss, groups.n_features)),
          t_(as_size(groups.count)),
          trial_(as_size(groups.count)),
          lengths_(as_size(groups.count)),
          spread_(as_size(groups.n_features)),
          listed_(as_size(groups.n_features)) {
        std::copy(scalings, scalings + groups.count, t_.begin());
    }

    NewtonOutcome run(double gap_target, Index max_steps) {
        if (!evaluate(t_)) return ended(NewtonStatus::not_finite);
        keep_best();
        while (!(out_.gap <= gap_target)) {
            if (out_.steps == max_steps) return ended(NewtonStatus::step_limit);
            ++out_.steps;
            choose();
            const bool moved = !free_.empty() && step();
            if (broken_) return ended(NewtonStatus::not_finite);
            if (!moved) return ended(NewtonStatus::no_descent);
            const double lowest = lowest_;
            idle_ = keep_best() || lowest_ < lowest * (1.0 - 1e-14) ? 0 : idle_ + 1;
            if (idle_ == kPatience) return ended(NewtonStatus::no_descent);
        }
        return ended(NewtonStatus::reached);
    }

  private:
    NewtonOutcome ended(NewtonStatus status) {
        out_.status = status;
        return out_;
    }

    // Solves the ridge regression for these scalings; lengths and phi are then those at t.
    bool evaluate(const std::vector<double>& t) {
        std::fill(spread_.begin(), spread_.end(), 0.0);
        double cost = 0.0;
        for (Index g = 0; g < groups_.count; ++g) {
            const double own = t[as_size(g)];
            if (own == 0.0) continue;
            cost += 0.5 * limit_[g] * limit_[g] * own;
            for (Index e = groups_.starts[g]; e < groups_.starts[g + 1]; ++e)
                spread_[as_size(groups_.members[e])] += own;
        }
        if (!std::isfinite(cost) || !system_->solve(spread_)) {
            broken_ = true;
            return false;
        }
        phi_ = system_->value + cost;
        return true;
    }

    // ||q_g|| at the point just accepted.
    void measure() {
        for (Index g = 0; g < groups_.count; ++g) {
            double square = 0.0;
            for (Index e = groups_.starts[g]; e < groups_.starts[g + 1]; ++e) {
                const double q = system_->scores[as_size(groups_.members[e])];
                square += q * q;
            }
            lengths_[as_size(g)] = std::sqrt(square);
        }
    }

    // Objective and gap at u_g = t_g q_g; the point is kept where its gap is the least so far.
    bool keep_best() {
        measure();
        double penalty = 0.0, polar = 0.0;
        for (Index g = 0; g < groups_.count; ++g) {
            penalty += limit_[g] * t_[as_size(g)] * lengths_[as_size(g)];
            polar = std::max(polar, lengths_[as_size(g)] / limit_[g]);
        }
        const double objective = 0.5 * system_->residual + penalty;
        const double gap = group_gap(system_->residual, system_->inner, penalty, polar);
        if (!std::isfinite(gap)) broken_ = true;
        lowest_ = std::min(lowest_, objective);
        if (!(std::max(gap, 0.0) < out_.gap)) return false;
        out_.gap = std::max(gap, 0.0);
        std::copy(t_.begin(), t_.end(), best_t_);
        for (Index g = 0; g < groups_.count; ++g)
            for (Index e = groups_.starts[g]; e < groups_.starts[g + 1]; ++e)
                u_[e] = t_[as_size(g)] * system_->slopes[as_size(groups_.members[e])];
        return true;
    }

    // The groups in use and the most violating others, until enough features are new.
    void choose() {
        free_.clear();
        entering_.clear();
        Index in_use = 0, fresh = 0;
        for (Index g = 0; g < groups_.count; ++g) {
            if (t_[as_size(g)] > 0.0)
                free_.push_back(g);
            else if (lengths_[as_size(g)] > limit_[g])
                entering_.push_back(g);
        }
        std::fill(listed_.begin(), listed_.end(), char{0});
        for (const Index g : free_) in_use += list(g);
        const Index most = std::max(kEntering, in_use / 2);
        std::sort(entering_.begin(), entering_.end(), [&](Index a, Index b) {
            const double ra = lengths_[as_size(a)] / limit_[a];
            const double rb = lengths_[as_size(b)] / limit_[b];
            return ra > rb || (ra == rb && a < b);
        });
        for (std::size_t e = 0; e < entering_.size() && fresh < most; ++e) {
            fresh += list(entering_[e]);
            free_.push_back(entering_[e]);
        }
        std::sort(free_.begin(), free_.end());
    }

    // Marks the features of a group; returns how many were not marked before.
    Index list(Index group) {
        Index fresh = 0;
        for (Index e = groups_.starts[group]; e < groups_.starts[group + 1]; ++e) {
            char& listed = listed_[as_size(groups_.members[e])];
            fresh += listed == 0;
            listed = 1;
        }
        return fresh;
    }

    bool step() {
        const std::size_t f = free_.size();
        system_->hessian(groups_, free_, hessian_);
        double trace = 0.0;
        for (std::size_t c = 0; c < f; ++c) trace += hessian_[c * f + c];
        for (std::size_t c = 0; c < f; ++c)
            hessian_[c * f + c] +=
                1e-10 * hessian_[c * f + c] + 1e-14 * trace / static_cast<double>(f);
        start_.resize(f);
        slope_.resize(f);
        scale_.resize(f);
        curved_.assign(f, 0.0);
        for (std::size_t c = 0; c < f; ++c) {
            const auto g = as_size(free_[c]);
            start_[c] = t_[g];
            scale_[c] = std::sqrt(hessian_[c * f + c]);
            slope_[c] = 0.5 * (limit_[g] * limit_[g] - lengths_[g] * lengths_[g]);
        }
        for (std::size_t c = 0; c < f; ++c)
            for (std::size_t r = 0; r < f; ++r) curved_[r] += hessian_[c * f + r] * start_[c];
        before_ = phi_;
        return toward(true) || (!broken_ && toward(false));
    }

    // target_ = argmin over t >= 0 of the model, by exchanges of what is positive, or where these
    // cycle by the active-set method.
    bool minimise_model() {
        const Index f = static_cast<Index>(free_.size());
        double largest = 0.0;
        for (std::size_t c = 0; c < free_.size(); ++c)
            largest = std::max(largest, std::fabs(curved_[c] - model_slope_[c]) / scale_[c]);
        // A price that is rounding, so that coordinates come in for more than that.
        price_.resize(free_.size());
        for (std::size_t c = 0; c < free_.size(); ++c) price_[c] = 1e-12 * largest * scale_[c];
        factor_.resize(as_size(f * f));
        order_.resize(free_.size());
        target_ = start_;
        SupportFactor support{factor_.data(), f, order_.data(), 0};
        const SignedQuadratic signs{hessian_.data(), f,   f,     model_slope_.data(),
                                    price_.data(),   0.0, 3 * f, false};
        const double one = 1.0;
        if (pivot_path(signs, &one, 1, support, start_.data(), target_.data()) == 1)
            return finite(target_);
        target_ = start_;
        const QuadraticProgram program{hessian_.data(), f,   f,   model_slope_.data(), true,
                                       nullptr,         0.0, 0.0, kInfinity,           false};
        ActiveFactor state{factor_.data(), f, order_.data(), 0, 0, 0.0};
        const QPStatus status = active_set(program, state, target_.data(), 1, 20 * f + 100).status;
        return (status == QPStatus::optimal || status == QPStatus::inexact) && finite(target_);
    }

    static bool finite(const std::vector<double>& x) {
        return std::all_of(x.begin(), x.end(), [](double number) { return std::isfinite(number); });
    }

    // Minimises the model over t >= 0 and goes there, or as far on the way as it descends.
    bool toward(bool secular) {
        const std::size_t f = free_.size();
        model_slope_.resize(f);
        for (std::size_t c = 0; c < f; ++c) {
            const auto g = as_size(free_[c]);
            const double square = lengths_[g] * lengths_[g];
            model_slope_[c] = secular ? square * (limit_[g] - lengths_[g]) / limit_[g] : slope_[c];
        }
        if (!minimise_model()) return false;
        double promised = 0.0;
        for (std::size_t c = 0; c < f; ++c) promised += slope_[c] * (target_[c] - start_[c]);
        if (!(promised < 0.0)) return false;
        double length = 1.0;
        for (int trial = 0; trial < kHalvings; ++trial, length *= 0.5) {
            trial_ = t_;
            for (std::size_t c = 0; c < f; ++c)
                trial_[as_size(free_[c])] = (1.0 - length) * start_[c] + length * target_[c];
            if (!evaluate(trial_)) return false;
            // phi is a difference of terms as large as the squared target.
            const double noise = 1e-14 * std::fabs(before_) + 1e-16 * system_->squared_target;
            if (phi_ <= before_ + kArmijo * length * promised + noise) {
                t_.swap(trial_);
                return true;
            }
        }
        return false;
    }

    const Groups& groups_;
    const double* limit_;
    double* u_;
    double* best_t_;
    std::unique_ptr<RidgeSystem> system_;
    std::vector<double> t_, trial_, lengths_, spread_;
    std::vector<char> listed_;
    std::vector<Index> free_, entering_, order_;
    std::vector<double> hessian_, curved_, start_, slope_, scale_, target_;
    std::vector<double> model_slope_, price_, factor_;
    NewtonOutcome out_;
    double phi_ = 0.0;
    double before_ = 0.0;
    double lowest_ = kInfinity;
    Index idle_ = 0;
    bool broken_ = false;
};

// matrix: the Gram matrix with `linear` (p), or the columns with the target (n). Without `resumes`
// the scalings are set to those of u. Returns the status, the steps and the gap.
std::tuple<int, Index, double> scalings_of_groups(const DoubleMatrix& matrix, bool is_gram,
                                                  const Doubles& linear, double squared_target,
                                                  const Positions& starts, const Positions& members,
                                                  const Doubles& limit, const OutDoubles& u,
                                                  const OutDoubles& scalings, bool resumes,
                                                  double gap_target, Index max_steps) {
    LeastSquares loss{};
    loss.squared_target = squared_target;
    if (is_gram) {
        loss.gram = matrix.data();
        loss.gram_stride = Index{matrix.stride(0)};
        loss.linear = linear.data();
    } else {
        loss.columns = matrix.data();
        loss.stride = Index{matrix.stride(1)};
        loss.length = size_of(matrix);
        loss.target = linear.data();
    }
    const Index n_features = size_of(matrix, 1);
    const Groups groups{starts.data(), members.data(), size_of(limit), n_features};
    // Groups that share columns undo each other's moves: sweeps over them take long.
    std::vector<char> seen(as_size(n_features), 0);
    bool apart = true;
    for (Index e = 0; e < starts.data()[groups.count]; ++e) {
        char& column = seen[as_size(members.data()[e])];
        apart = apart && column == 0;
        column = 1;
    }
    if (!resumes) {
        double gap = kInfinity;
        if (!is_gram && apart && groups.count > 0)
            gap = sweep_groups(loss, groups, limit.data(), gap_target, u.data());
        for (Index g = 0; g < groups.count; ++g) {
            const double* own = u.data() + groups.starts[g];
            const double square = dot(own, own, groups.starts[g + 1] - groups.starts[g]);
            scalings.data()[g] = std::sqrt(square) / limit.data()[g];
        }
        if (gap <= gap_target) return {static_cast<int>(NewtonStatus::reached), 0, gap};
    }
    const NewtonOutcome outcome =
        Descent(loss, groups, limit.data(), u.data(), scalings.data()).run(gap_target, max_steps);
    return {static_cast<int>(outcome.status), outcome.steps, outcome.gap};
}

}  // namespace

void bind_group_newton(nb::module_& m) {
    define(m, "group_newton", &scalings_of_groups);
}

}  // namespace atomlearn
