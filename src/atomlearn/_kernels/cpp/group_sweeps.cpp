// For one group with the Gram matrix G = A'A and c = A'r + G u, with r the residual, the minimum of
// 1/2 u'Gu - c'u + limit ||u|| is 0 where ||c|| <= limit. Otherwise proximal gradient steps on this
// small problem lead to it, at the step length 1 / max_i sum_k |G_ik|.
#include "group_sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "blas.hpp"
#include "few_columns.hpp"
#include "newton.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

// Proximal gradient steps for one group, and the square of the share of its limit at which a change
// of its slope ends them.
constexpr int kInner = 30;
constexpr double kSettled = 1e-6;

class Sweeps {
  public:
    Sweeps(const LeastSquares& loss, const Groups& groups, const double* limit, double* u)
        : loss_(loss),
          groups_(groups),
          limit_(limit),
          u_(u),
          residual_(loss.target, loss.target + loss.length),
          scores_(as_size(groups.n_features)),
          grams_(as_size(groups.count)) {
        for (Index e = 0; e < groups.starts[groups.count]; ++e)
            if (u[e] != 0.0) add_multiple(residual_.data(), -u[e], column(e), loss.length);
    }

    double run(double gap_target) {
        double share = 0.1, work = 0.0, most = 0.0;
        while (true) {
            const double gap = look();
            if (gap <= gap_target || !std::isfinite(gap)) return gap;
            if (work == 0.0) most = work_of_newton();
            work += static_cast<double>(loss_.length * groups_.n_features);
            // The objective falls by less than this in the last sweep.
            const double enough = share * gap_target;
            share *= 0.25;
            double before = kInfinity, moved = kInfinity;
            while (moved > enough) {
                before = moved;
                moved = sweep();
                work += work_of_sweep_;
                if (!std::isfinite(moved)) return kInfinity;
                // Sweeps that are left if each moves by the same share of the one before it.
                const double rate = std::min(moved / before, 1.0 - 1e-9);
                const double left =
                    moved > enough ? std::log(enough / moved) / std::log(rate) : 0.0;
                if (!(work + left * work_of_sweep_ <= most)) return kInfinity;
            }
        }
    }

  private:
    // Multiplications of two Newton steps on the scalings of the groups that are listed.
    double work_of_newton() const {
        Index features = 0;
        for (const Index g : listed_) features += size(g);
        const double a = static_cast<double>(std::min(features, loss_.length));
        const double b = static_cast<double>(std::max(features, loss_.length));
        return 2.0 * a * a * (b + a / 3.0) / kBlasGain;
    }

    const double* column(Index e) const {
        return loss_.columns + groups_.members[e] * loss_.stride;
    }
    Index size(Index g) const { return groups_.starts[g + 1] - groups_.starts[g]; }

    // Lists the groups of the next sweeps; returns the gap.
    double look() {
        blas::transposed_product(loss_.length, groups_.n_features, loss_.columns, loss_.stride,
                                 residual_.data(), scores_.data());
        listed_.clear();
        work_of_sweep_ = 0.0;
        double penalty = 0.0, polar = 0.0;
        for (Index g = 0; g < groups_.count; ++g) {
            double pull = 0.0;
            for (Index e = groups_.starts[g]; e < groups_.starts[g + 1]; ++e) {
                const double q = scores_[as_size(groups_.members[e])];
                pull += q * q;
            }
            pull = std::sqrt(pull);
            const double* own = u_ + groups_.starts[g];
            const double length = std::sqrt(dot(own, own, size(g)));
            penalty += limit_[g] * length;
            polar = std::max(polar, pull / limit_[g]);
            if (length == 0.0 && !(pull > limit_[g])) continue;
            listed_.push_back(g);
            const double m = static_cast<double>(size(g));
            work_of_sweep_ += m * (2.0 * static_cast<double>(loss_.length) + m * m);
        }
        const double square = dot(residual_.data(), residual_.data(), loss_.length);
        const double inner = dot(residual_.data(), loss_.target, loss_.length);
        return group_gap(square, inner, penalty, polar);
    }

    // Returns by how much the moves lower the objective at least.
    double sweep() {
        double lowered = 0.0;
        for (const Index g : listed_) {
            const Index m = size(g), first = groups_.starts[g];
            const std::vector<double>& gram = gram_of(g);
            pull_.resize(as_size(m));
            for (Index i = 0; i < m; ++i)
                pull_[as_size(i)] = dot(column(first + i), residual_.data(), loss_.length) +
                                    dot(gram.data() + i * m, u_ + first, m);
            minimize(gram, limit_[g], u_ + first);
            for (Index i = 0; i < m; ++i) {
                turn_[as_size(i)] -= u_[first + i];
                u_[first + i] += turn_[as_size(i)];
                if (turn_[as_size(i)] != 0.0)
                    add_multiple(residual_.data(), -turn_[as_size(i)], column(first + i),
                                 loss_.length);
            }
            for (Index i = 0; i < m; ++i)
                lowered += 0.5 * turn_[as_size(i)] * dot(gram.data() + i * m, turn_.data(), m);
        }
        return lowered;
    }

    const std::vector<double>& gram_of(Index g) {
        std::vector<double>& gram = grams_[as_size(g)];
        const Index m = size(g);
        if (!gram.empty()) return gram;
        gram.resize(as_size(m * m));
        for (Index i = 0; i < m; ++i)
            for (Index k = 0; k <= i; ++k)
                gram[as_size(i * m + k)] = gram[as_size(k * m + i)] =
                    dot(column(groups_.starts[g] + i), column(groups_.starts[g] + k), loss_.length);
        return gram;
    }

    // Writes the minimum over a group to `turn_`, from c = `pull_` and its coefficients so far.
    void minimize(const std::vector<double>& gram, double limit, const double* start) {
        const Index m = static_cast<Index>(pull_.size());
        turn_.assign(pull_.size(), 0.0);
        if (!(dot(pull_.data(), pull_.data(), m) > limit * limit)) return;
        turn_.assign(start, start + m);
        double largest = 0.0;
        for (Index i = 0; i < m; ++i) {
            double sum = 0.0;
            for (Index k = 0; k < m; ++k) sum += std::fabs(gram[as_size(i * m + k)]);
            largest = std::max(largest, sum);
        }
        there_.resize(pull_.size());
        for (int step = 0; step < kInner; ++step) {
            double square = 0.0, change = 0.0;
            for (Index i = 0; i < m; ++i) {
                const double slope = dot(gram.data() + i * m, turn_.data(), m) - pull_[as_size(i)];
                there_[as_size(i)] = largest * turn_[as_size(i)] - slope;
                square += there_[as_size(i)] * there_[as_size(i)];
            }
            const double kept = std::max(1.0 - limit / std::sqrt(square), 0.0) / largest;
            for (Index i = 0; i < m; ++i) {
                there_[as_size(i)] *= kept;
                const double move = there_[as_size(i)] - turn_[as_size(i)];
                change += move * move;
            }
            turn_.swap(there_);
            if (change * largest * largest <= kSettled * limit * limit) break;
        }
    }

    const LeastSquares& loss_;
    const Groups& groups_;
    const double* limit_;
    double* u_;
    std::vector<double> residual_, scores_;
    std::vector<std::vector<double>> grams_;
    std::vector<Index> listed_;
    std::vector<double> pull_, turn_, there_;
    double work_of_sweep_ = 0.0;
};

}  // namespace

double group_gap(double residual, double inner, double penalty, double polar) {
    const double objective = 0.5 * residual + penalty;
    const double shrink = polar > 1.0 ? 1.0 / polar : 1.0;
    const auto conjugate = [&](double s) { return s * (0.5 * s * residual - inner); };
    const double excess = polar > 1.0 ? objective * (polar - 1.0) : 0.0;
    return objective + std::min(conjugate(shrink), conjugate(1.0) + excess);
}

double sweep_groups(const LeastSquares& loss, const Groups& groups, const double* limit,
                    double gap_target, double* u) {
    return Sweeps(loss, groups, limit, u).run(gap_target);
}

}  // namespace atomlearn
