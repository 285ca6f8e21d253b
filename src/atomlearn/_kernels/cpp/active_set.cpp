// The active-set method of [Vinyes, Obozinski 2017, Algorithm 2; Nocedal, Wright 2006, chapter 16]
// with a Cholesky factor that is updated by rank one.
//
// A pivot is a full step, to the minimum over the atoms in use, or a drop step, toward it as far
// as the weights stay >= 0. Steps are taken along -Q_J^-1 g_J from the present gradient, so that
// an error of the factor costs a second step and not the answer.
//
// Atoms that depend linearly on those in use get a tiny pivot of their own. The step is then
// dominated by the null direction, along which some weight reaches zero and its atom leaves: the
// move of the min-norm-point algorithm [Wolfe 1976], without a case of its own.
//
// Where weights have either sign, the price of an atom is too: p_j = sign(c_j) cost_j, and that of
// an atom outside has the sign with which it would enter. An atom whose weight passes through zero
// leaves, and comes back with the other sign.
//
// Where p'c = radius binds, sigma p p' is added to Q: a constant on that plane, which makes the
// factor exist where atoms are affinely, though not linearly, independent.
#include "active_set.hpp"

#include <cmath>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "factor.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

class Loop {
  public:
    Loop(const QuadraticProgram& program, ActiveFactor& state, double* weights, Index batch)
        : p_(program),
          s_(state),
          c_(weights),
          batch_(std::max<Index>(batch, 1)),
          n_(program.size),
          scale_(as_size(n_)),
          root_(as_size(n_)),
          sign_(as_size(n_), 1.0),
          gradient_(as_size(n_)),
          column_(as_size(n_) + 1),
          direction_(as_size(n_)),
          toward_price_(as_size(n_)),
          before_(as_size(n_)),
          linear_(as_size(n_)),
          active_(as_size(n_), 0),
          blocked_(as_size(n_), 0) {}

    QPOutcome run(Index max_pivots) {
        if (!state_is_sound()) return ended(QPStatus::bad_state);
        if (n_ == 0) return ended(QPStatus::optimal);
        if (!prepare()) return ended(QPStatus::not_finite);
        const std::vector<double> given(c_, c_ + n_);
        if (bring_factor_up_to_date()) return from_a_part(given, max_pivots);
        return pivots(max_pivots);
    }

  private:
    QPOutcome pivots(Index max_pivots) {
        refresh_gradient();
        value_ = value();
        while (true) {
            if (!std::isfinite(value_)) return ended(QPStatus::not_finite);
            if (out_.pivots >= max_pivots) return ended(QPStatus::pivot_limit);
            if (unsettled()) {
                if (!step()) return ended(QPStatus::not_finite);
            } else if (!enter()) {
                return ended(inexact_ ? QPStatus::inexact : QPStatus::optimal);
            }
        }
    }

    // Where a start that was moved does not lead to the minimum it may have been the better point.
    QPOutcome from_a_part(const std::vector<double>& given, Index max_pivots) {
        if (tight_) rescale(spent());
        pivots(max_pivots);
        if (out_.status == QPStatus::optimal) return out_;
        const std::vector<double> reached(c_, c_ + n_);
        const double there = objective();
        std::copy(given.begin(), given.end(), c_);
        if (there <= objective()) {
            std::copy(reached.begin(), reached.end(), c_);
        } else {
            forget();
        }
        return out_;
    }

    double objective() {
        std::vector<double> product(as_size(n_));
        add_product(product.data(), 1.0);
        double total = 0.0;
        double paid = 0.0;
        for (Index j = 0; j < n_; ++j) {
            total += c_[j] * (0.5 * at(product, j) - at(linear_, j));
            paid += cost(j) * std::fabs(c_[j]);
        }
        return total + p_.level * paid + 0.5 * p_.coupling * paid * paid;
    }

    double cost(Index j) const { return p_.price ? p_.price[j] : 1.0; }
    double price(Index j) const { return sign_[as_size(j)] * cost(j); }
    double& at(std::vector<double>& v, Index j) { return v[static_cast<std::size_t>(j)]; }
    const double* row(Index j) const { return p_.gram + j * p_.stride; }
    double entry(Index i, Index j) const {
        return row(i)[j] + (p_.coupling + s_.sigma) * price(i) * price(j);
    }
    double spent() const {
        double total = 0.0;
        for (Index t = 0; t < s_.count; ++t) total += price(s_.order[t]) * c_[s_.order[t]];
        return total;
    }

    QPOutcome ended(QPStatus status) {
        out_.status = status;
        return out_;
    }

    // Nothing of the state that came in may lead outside an array.
    bool state_is_sound() {
        if (s_.count < 0 || s_.count > n_ || s_.stride < n_) return false;
        for (Index t = 0; t < s_.count; ++t) {
            const Index j = s_.order[t];
            if (j < 0 || j >= n_ || active_[as_size(j)]) return false;
            active_[as_size(j)] = 1;
        }
        return true;
    }

    // Sizes of the atoms, and a feasible start.
    bool prepare() {
        double mean = 0.0;
        double total = 0.0;
        for (Index j = 0; j < n_; ++j) {
            const double own = cost(j);
            at(scale_, j) = std::fabs(row(j)[j]) + p_.coupling * own * own + p_.ridge;
            mean += at(scale_, j) / (own * own) / static_cast<double>(n_);
            if (p_.is_signed && c_[j] < 0.0) at(sign_, j) = -1.0;
            if (!(at(sign_, j) * c_[j] > 0.0)) c_[j] = 0.0;
            total += price(j) * c_[j];
            if (!std::isfinite(p_.linear[j])) return false;
        }
        if (!std::isfinite(mean) || !std::isfinite(total)) return false;
        sigma_ = mean > 0.0 ? mean : 1.0;
        for (Index j = 0; j < n_; ++j) at(root_, j) = std::sqrt(at(scale_, j));
        // The gradient at the start tells `linear`, but only before the start is moved.
        std::copy(p_.linear, p_.linear + n_, linear_.begin());
        if (p_.linear_is_gradient) add_product(linear_.data(), -1.0);
        if (p_.is_signed)
            for (Index j = 0; j < n_; ++j)
                if (c_[j] == 0.0 && at(linear_, j) < 0.0) at(sign_, j) = -1.0;
        for (Index j = 0; j < n_; ++j)
            if (at(root_, j) > 0.0)
                target_ = std::max(target_, std::fabs(at(linear_, j)) / at(root_, j));
        tight_ = p_.equality;
        if (std::isfinite(p_.radius) && (p_.equality || total >= p_.radius * (1.0 - 1e-14))) {
            tight_ = true;
            if (total > 0.0) {
                rescale(total);
            } else {
                const Index best = best_vertex();
                c_[best] = p_.radius / price(best);
            }
        }
        return true;
    }

    // Puts p'c = radius exactly, from p'c = total > 0.
    void rescale(double total) {
        for (Index j = 0; j < n_; ++j) c_[j] *= p_.radius / total;
    }

    // The atom that is best alone: a start for p'c = radius from nothing.
    Index best_vertex() {
        Index best = 0;
        double least = kInfinity;
        for (Index j = 0; j < n_; ++j) {
            const double weight = p_.radius / cost(j);
            const double alone =
                weight * (0.5 * weight * at(scale_, j) - at(sign_, j) * at(linear_, j));
            if (alone < least) {
                least = alone;
                best = j;
            }
        }
        return best;
    }

    // target = target * factor + (gram + ridge I) c over all weights in use.
    void add_product(double* target, double factor) {
        for (Index j = 0; j < n_; ++j) target[j] *= factor;
        for (Index k = 0; k < n_; ++k) {
            if (c_[k] == 0.0) continue;
            add_multiple(target, c_[k], row(k), n_);
            target[k] += p_.ridge * c_[k];
        }
    }

    // g = Qc - linear + level p; the multiplier nu makes g_j + nu p_j vanish on average over the
    // weights.
    void refresh_gradient() {
        std::copy(linear_.begin(), linear_.end(), gradient_.begin());
        add_product(gradient_.data(), -1.0);
        if (p_.is_signed)
            for (Index j = 0; j < n_; ++j)
                if (!active_[as_size(j)]) at(sign_, j) = at(gradient_, j) > 0.0 ? -1.0 : 1.0;
        const double common = p_.level + (p_.coupling > 0.0 ? p_.coupling * spent() : 0.0);
        if (common != 0.0)
            for (Index j = 0; j < n_; ++j) at(gradient_, j) += common * price(j);
        fresh_ = true;
        reach_ = 0.0;
        for (Index t = 0; t < s_.count; ++t)
            reach_ += at(root_, s_.order[t]) * std::fabs(c_[s_.order[t]]);
        multiplier_ = 0.0;
        common_ = 0.0;
        if (!tight_) return;
        double inner = 0.0;
        for (Index t = 0; t < s_.count; ++t) inner += at(gradient_, s_.order[t]) * c_[s_.order[t]];
        multiplier_ = -inner / p_.radius;
        for (Index t = 0; t < s_.count; ++t) {
            const Index j = s_.order[t];
            common_ = std::max(common_, own_terms(j) / cost(j));
        }
    }

    // After part of the way to the minimum over the atoms in use as much of their gradient is gone,
    // up to errors of the factor; that of the others is not known until it is asked for.
    void shorten_gradient(double length) {
        for (Index t = 0; t < s_.count; ++t) at(gradient_, s_.order[t]) *= 1.0 - length;
        fresh_ = false;
    }

    double reduced(Index j) { return at(gradient_, j) + multiplier_ * price(j); }
    // The size of the terms whose sum g_j is; ||a_j|| ||y|| is what a_j'y is rounded at.
    double own_terms(Index j) {
        return std::fabs(at(linear_, j)) + p_.level * cost(j) + at(root_, j) * (reach_ + target_);
    }
    // The multiplier is as exact as the least exact gradient it comes from.
    double terms(Index j) { return own_terms(j) + common_ * cost(j); }

    double value() {
        double total = 0.0;
        for (Index t = 0; t < s_.count; ++t) {
            const Index j = s_.order[t];
            total += 0.5 * c_[j] * (at(gradient_, j) + p_.level * price(j) - at(linear_, j));
        }
        return total;
    }

    // The factor is of what is in use now, in the mode that is on now. True where atoms that depend
    // on others had to be taken out of use: several of their tiny pivots at once would overflow.
    bool bring_factor_up_to_date() {
        const bool same_mode = (s_.sigma > 0.0) == tight_;
        const bool same_scale = s_.sigma < 1e3 * sigma_ && sigma_ < 1e3 * s_.sigma;
        // Of prices that change their sign only the Gram matrix's own factor stays.
        const bool turned = p_.is_signed && (tight_ || p_.coupling > 0.0);
        if (!same_mode || (tight_ && !same_scale) || turned) {
            forget();
            s_.sigma = tight_ ? sigma_ : 0.0;
        }
        Index leaving = 0;
        for (Index t = 0; t < s_.count; ++t) leaving += c_[s_.order[t]] == 0.0;
        if (2 * leaving > s_.count) forget();
        for (Index t = s_.count - 1; t >= 0; --t)
            if (c_[s_.order[t]] == 0.0) remove(t);
        std::vector<Index> atoms;
        for (Index j = 0; j < n_; ++j)
            if (c_[j] != 0.0 && !active_[as_size(j)]) atoms.push_back(j);
        bool dependent = false;
        bool moved = false;
        if (!append_together(atoms)) {
            for (const Index j : atoms) {
                if (!append(j, !dependent)) dependent = true;
                if (active_[as_size(j)]) continue;
                c_[j] = 0.0;
                moved = true;
            }
        }
        j_changed();
        return moved;
    }

    void forget() {
        for (Index t = 0; t < s_.count; ++t) active_[as_size(s_.order[t])] = 0;
        s_.count = 0;
        s_.updates = 0;
    }

    // An atom that depends on those in use gets a pivot of its own where it has to be there;
    // several of them at once would overflow. False of one that depends on them.
    bool append(Index j, bool dependent_too = true) {
        const double own = price(j);
        for (Index t = 0; t < s_.count; ++t) at(column_, t) = entry(j, s_.order[t]);
        const double size = at(scale_, j) + s_.sigma * own * own;
        // A zero column has no size of its own.
        const double unit = size > 0.0 ? size : sigma_ * own * own;
        const double pivot = factor_append(s_.factor, s_.stride, s_.count, column_.data(),
                                           entry(j, j) + p_.ridge, kTiny * unit);
        const bool independent = pivot > kTiny * unit;
        if (!dependent_too && !independent) return false;
        s_.order[s_.count++] = j;
        active_[as_size(j)] = 1;
        ++s_.updates;
        return independent;
    }

    void append_all(const std::vector<Index>& atoms) {
        if (append_together(atoms)) return;
        for (const Index j : atoms) append(j);
    }

    // At the speed of products of matrices, where there are several: R12 = R^-T Q12 and the factor
    // of what is left of Q22. False, with nothing changed, where some pivot is too small for it.
    bool append_together(const std::vector<Index>& atoms) {
        if (atoms.size() < 2) return false;
        const Index k = s_.count;
        const auto more = static_cast<Index>(atoms.size());
        std::vector<double> side(as_size(k * more)), corner(as_size(more * more));
        std::vector<double> units(atoms.size());
        for (Index b = 0; b < more; ++b) {
            const Index j = atoms[as_size(b)];
            const double own = price(j);
            at(units, b) = at(scale_, j) + s_.sigma * own * own;
            for (Index t = 0; t < k; ++t) at(side, b * k + t) = entry(j, s_.order[t]);
            for (Index a = b; a < more; ++a) at(corner, b * more + a) = entry(j, atoms[as_size(a)]);
            at(corner, b * more + b) += p_.ridge;
        }
        if (k > 0) {
            blas::solve_lower(k, more, s_.factor, s_.stride, side.data(), k);
            blas::add_gram(more, k, -1.0, side.data(), k, 1.0, corner.data(), more);
        }
        if (!blas::cholesky(more, corner.data(), more)) return false;
        for (Index b = 0; b < more; ++b) {
            const double pivot = at(corner, b * more + b) * at(corner, b * more + b);
            if (!(pivot > kTiny * at(units, b))) return false;
        }
        for (Index b = 0; b < more; ++b) {
            for (Index t = 0; t < k; ++t) s_.factor[t * s_.stride + k + b] = at(side, b * k + t);
            std::copy_n(corner.data() + b * more + b, more - b,
                        s_.factor + (k + b) * s_.stride + k + b);
            s_.order[k + b] = atoms[as_size(b)];
            active_[as_size(atoms[as_size(b)])] = 1;
        }
        s_.count += more;
        s_.updates += more;
        return true;
    }

    void remove(Index t) {
        factor_delete(s_.factor, s_.stride, s_.count, t);
        active_[as_size(s_.order[t])] = 0;
        std::copy(s_.order + t + 1, s_.order + s_.count, s_.order + t);
        --s_.count;
        ++s_.updates;
    }

    void refactor() {
        const std::vector<Index> atoms(s_.order, s_.order + s_.count);
        forget();
        append_all(atoms);
        s_.updates = 0;
    }

    void switch_mode(bool tight) {
        tight_ = tight;
        s_.sigma = tight ? sigma_ : 0.0;
        refactor();
        j_changed();
    }

    void j_changed() {
        steps_here_ = 0;
        last_residual_ = kInfinity;
        inexact_ = false;
    }

    double residual() {
        double worst = 0.0;
        for (Index t = 0; t < s_.count; ++t) {
            const Index j = s_.order[t];
            const double size = terms(j);
            if (size > 0.0) worst = std::max(worst, std::fabs(reduced(j)) / size);
        }
        return worst;
    }

    // True where the weights in use are not yet at their minimum and another step can help.
    bool unsettled() {
        if (s_.count == 0) return false;
        const double now = residual();
        if (now <= kNoise) {
            inexact_ = false;
            return false;
        }
        if (steps_here_ == 0) {
            // What a warm start lacks in digits is no pivot.
            counts_ = now > kDrift;
            return true;
        }
        if (now > kDrift && s_.updates > 0) {
            refactor();
            steps_here_ = 1;
            last_residual_ = kInfinity;
            return true;
        }
        const bool improving = now < 0.5 * last_residual_;
        last_residual_ = now;
        if (!improving) inexact_ = now > 4 * kNoise;
        return improving;
    }

    // direction = the way to the minimum over the atoms in use, in the order of the factor.
    void find_direction() {
        const Index k = s_.count;
        for (Index t = 0; t < k; ++t) at(direction_, t) = -at(gradient_, s_.order[t]);
        if (tight_) {
            // Only differences along the plane count: take the common part off before solving.
            for (Index t = 0; t < k; ++t) at(direction_, t) -= multiplier_ * price(s_.order[t]);
        }
        factor_solve(s_.factor, s_.stride, k, direction_.data());
        if (!tight_) return;
        for (Index t = 0; t < k; ++t) at(toward_price_, t) = price(s_.order[t]);
        factor_solve(s_.factor, s_.stride, k, toward_price_.data());
        double off = 0.0;
        double normal = 0.0;
        for (Index t = 0; t < k; ++t) {
            off += price(s_.order[t]) * at(direction_, t);
            normal += price(s_.order[t]) * at(toward_price_, t);
        }
        if (normal > 0.0) {
            for (Index t = 0; t < k; ++t) at(direction_, t) -= off / normal * at(toward_price_, t);
        }
    }

    double slope() {
        double total = 0.0;
        for (Index t = 0; t < s_.count; ++t) total += reduced(s_.order[t]) * at(direction_, t);
        return total;
    }

    // One pivot, or a refinement of the last full step. False where numbers overflow.
    bool step() {
        find_direction();
        const double down = slope();
        if (!std::isfinite(down)) return false;
        ++steps_here_;
        if (down >= 0.0) return true;  // rounding: no descent left here
        double length = 1.0;
        Index leaving = -1;
        for (Index t = 0; t < s_.count; ++t) {
            const double side = at(sign_, s_.order[t]);
            const double now = side * c_[s_.order[t]];
            const double move = side * at(direction_, t);
            at(before_, t) = c_[s_.order[t]];
            if (now + move <= 0.0 && move < 0.0 && now < -move * length) {
                length = now / -move;
                leaving = t;
            } else if (leaving < 0 && now + move <= 0.0 && move < 0.0) {
                leaving = t;  // reaches zero just at the end
            }
        }
        const bool binds = length_within_radius(&length);
        move_along(length, binds ? -1 : leaving);
        if (binds) rescale(spent());
        if (leaving >= 0 && !binds && !tight_) {
            shorten_gradient(length);
        } else {
            refresh_gradient();
        }
        const double along = slope();
        if (length > 0.0 && down + along > 0.0 && along > -1e-3 * down) {
            // The factor was wrong enough to go uphill: back to the minimum on the way.
            move_along(length * down / (down - along), -1);
            refresh_gradient();
            note_value();
            return true;
        }
        if (binds) {
            ++out_.pivots;
            switch_mode(true);
            refresh_gradient();
        } else if (leaving >= 0) {
            ++out_.pivots;
            if (length == 0.0) blocked_[as_size(s_.order[leaving])] = 1;
            remove(leaving);
            if (tight_) refresh_gradient();
            j_changed();
        } else if (steps_here_ == 1 && counts_) {
            ++out_.pivots;
        }
        if (length > 0.0) note_value();
        return true;
    }

    // Shortens a step that leaves p'c <= radius; true where that is what ends it.
    bool length_within_radius(double* length) {
        if (tight_ || !std::isfinite(p_.radius)) return false;
        double rise = 0.0;
        for (Index t = 0; t < s_.count; ++t) rise += price(s_.order[t]) * at(direction_, t);
        const double room = std::max(p_.radius - spent(), 0.0);
        if (!(rise * *length > room)) return false;
        *length = room / rise;
        return true;
    }

    void move_along(double length, Index leaving) {
        for (Index t = 0; t < s_.count; ++t) {
            const double there = at(before_, t) + length * at(direction_, t);
            c_[s_.order[t]] = at(sign_, s_.order[t]) * there > 0.0 ? there : 0.0;
        }
        if (leaving >= 0) c_[s_.order[leaving]] = 0.0;
        if (tight_) {
            const double total = spent();
            if (total > 0.0) rescale(total);
        }
    }

    // Progress beyond rounding lets atoms try again that had to leave where they came in.
    void note_value() {
        const double now = value();
        double size = 0.0;
        for (Index t = 0; t < s_.count; ++t)
            size += std::fabs(at(linear_, s_.order[t]) * c_[s_.order[t]]);
        if (now < value_ - 1e-15 * size) {
            std::fill(blocked_.begin(), blocked_.end(), char{0});
            release_blocked_ = false;
        }
        value_ = now;
    }

    // Takes in the atoms that would lower the value most; false where there is none.
    bool enter() {
        if (!fresh_) {
            refresh_gradient();
            return true;
        }
        if (tight_ && !p_.equality && !release_blocked_ && multiplier_ < -kNoise * common_) {
            release_blocked_ = true;
            switch_mode(false);
            refresh_gradient();
            return true;
        }
        std::vector<Index> entering;
        while (static_cast<Index>(entering.size()) < batch_) {
            const Index best = most_violated();
            if (best < 0) break;
            active_[as_size(best)] = 1;
            entering.push_back(best);
        }
        for (const Index j : entering) active_[as_size(j)] = 0;
        if (!append_together(entering))
            for (const Index j : entering) append(j, j == entering.front());
        if (!entering.empty()) j_changed();
        return !entering.empty();
    }

    // The atom outside with the largest decrease, were it alone: g^2 / Q_jj.
    Index most_violated() {
        Index best = -1;
        double most = 0.0;
        for (Index j = 0; j < n_; ++j) {
            if (active_[as_size(j)] || blocked_[as_size(j)]) continue;
            const double wanted = -at(sign_, j) * reduced(j);
            if (!(wanted > kNoise * terms(j))) continue;
            const double gain = at(scale_, j) > 0.0 ? wanted / at(root_, j) : kInfinity;
            if (gain > most) {
                most = gain;
                best = j;
            }
        }
        return best;
    }

    const QuadraticProgram& p_;
    ActiveFactor& s_;
    double* c_;
    Index batch_;
    Index n_;
    std::vector<double> scale_, root_;  // Q_jj without sigma, as a sum of magnitudes; its root
    std::vector<double> sign_;          // of each weight; outside, with which it would enter
    std::vector<double> gradient_, column_, direction_, toward_price_, before_, linear_;
    std::vector<char> active_, blocked_;
    QPOutcome out_;
    bool tight_ = false;
    bool release_blocked_ = false;
    bool inexact_ = false;
    bool fresh_ = false;  // the gradient is of the weights as they are, for all atoms
    bool counts_ = true;  // the coming full step is a pivot
    double sigma_ = 1.0;
    double reach_ = 0.0;   // bounds the norm of A c
    double common_ = 0.0;  // the largest terms in units of price, where tight
    double target_ = 0.0;  // and of y, where linear = A'y
    double multiplier_ = 0.0;
    double value_ = 0.0;
    double last_residual_ = kInfinity;
    int steps_here_ = 0;  // steps since the atoms in use, or the factor, changed
};

}  // namespace

QPOutcome active_set(const QuadraticProgram& program, ActiveFactor& state, double* weights,
                     Index batch, Index max_pivots) {
    return Loop(program, state, weights, batch).run(max_pivots);
}

namespace {

// counts: in and out the atoms in use and the updates of their factor; out the pivots. sigma: in
// and out.
int active_set_of(const DoubleMatrix& gram, const Doubles& linear, bool linear_is_gradient,
                  const std::optional<Doubles>& price, double coupling, double ridge, double radius,
                  bool equality, double level, bool is_signed, const OutDoubleMatrix& factor,
                  const OutPositions& order, const OutPositions& counts, const OutDoubles& sigma,
                  const OutDoubles& weights, Index batch, Index max_pivots) {
    const QuadraticProgram program{gram.data(),
                                   Index{gram.stride(0)},
                                   size_of(weights),
                                   linear.data(),
                                   linear_is_gradient,
                                   price ? price->data() : nullptr,
                                   coupling,
                                   ridge,
                                   radius,
                                   equality,
                                   level,
                                   is_signed};
    ActiveFactor state{factor.data(),    size_of(factor, 1), order.data(),
                       counts.data()[0], counts.data()[1],   sigma.data()[0]};
    const QPOutcome outcome = active_set(program, state, weights.data(), batch, max_pivots);
    counts.data()[0] = state.count;
    counts.data()[1] = state.updates;
    counts.data()[2] = outcome.pivots;
    sigma.data()[0] = state.sigma;
    return static_cast<int>(outcome.status);
}

}  // namespace

void bind_active_set(nb::module_& m) {
    define(m, "active_set", &active_set_of);
}

}  // namespace atomlearn
