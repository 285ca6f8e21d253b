// Accelerated proximal gradient steps find the pattern: which entries have d = 1, 0 < d < 1 or
// d = 0 in g(w)^2 = min sum w_j^2 / d_j. Newton steps jump to where a pattern is optimal; a search
// on the forward-backward envelope cuts them short where the pattern changes on the way.
#include "ksupport_newton.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include "blas.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

constexpr double kRounding = 2e-15;  // of the terms of the objective
constexpr double kAtRest = 1e-13;    // of the largest weight: a fixed point
constexpr int kMostRoots = 100;
// Of the Newton system, in units of L: after a step cut short, and when steps are whole again.
constexpr double kLeastDamping = 1e-10, kFirstDamping = 1e-4, kMostDamping = 1e-1;
constexpr int kMostTrials = 20;
constexpr Index kShortest = 4, kLongest = 64;  // gradient steps between Newton steps

using Vector = std::vector<double>;
enum class Kind : signed char { zero, middle, one };

// What d = clip(t |v| - step, 0, 1) makes of the entries.
struct Count {
    double ones = 0.0, middle = 0.0, sum_of_middle = 0.0;
};

ATOMLEARN_INLINE Count counted(const double* v, Index size, double t, double step) {
    double ones = 0.0, middle = 0.0, sum = 0.0;
#pragma omp simd reduction(+ : ones, middle, sum)
    for (Index j = 0; j < size; ++j) {
        const double a = std::fabs(v[j]), d = t * a - step;
        const double one = d >= 1.0 ? 1.0 : 0.0, between = (d > 0.0 ? 1.0 : 0.0) - one;
        ones += one;
        middle += between;
        sum += between * a;
    }
    return {ones, middle, sum};
}

// The t with sum of d = k, begun at `t` (0: nowhere); infinite where at most k entries are not
// zero.
double root(const Vector& v, Index k, double step, double t) {
    const auto size = static_cast<Index>(v.size());
    double total = 0.0;
    Index used = 0;
    for (const double x : v) {
        total += std::fabs(x);
        used += x != 0.0;
    }
    if (used <= k) return kInfinity;
    const auto wanted = static_cast<double>(k);
    double low = 0.0, high = kInfinity;
    if (!(t > 0.0) || !std::isfinite(t)) t = (wanted + step * static_cast<double>(used)) / total;
    for (int round = 0; round < kMostRoots; ++round) {
        const Count at = vectorized<counted>(v.data(), size, t, step);
        const double excess = at.ones + t * at.sum_of_middle - step * at.middle - wanted;
        if (excess == 0.0) break;
        (excess < 0.0 ? low : high) = t;
        double next =
            at.middle > 0.0 ? (wanted - at.ones + step * at.middle) / at.sum_of_middle : 0.0;
        if (std::fabs(next - t) <= 1e-15 * t) return next;
        if (!(next > low && next < high)) next = std::isinf(high) ? 2.0 * t : 0.5 * (low + high);
        if (!(next > low && next < high)) break;
        t = next;
    }
    return t;
}

// A point with H w (or A w), its norm and what is minimised.
struct Point {
    Vector w, image;
    double gauge = 0.0, value = 0.0;
};

class Fit {
  public:
    explicit Fit(const SupportQuadratic& problem)
        : p_(problem), gradient_(as_size(p_.count)), kinds_(as_size(p_.count)) {
        for (Index j = 0; j < p_.count; ++j)
            lipschitz_ =
                std::max(lipschitz_, p_.gram ? column(j)[j] : dot(column(j), column(j), p_.rows));
    }

    Index run(double* weights, Index most) {
        best_ = at(Vector(weights, weights + p_.count));
        const double start = best_.value;
        Index steps = 0, period = kShortest;
        if (!(lipschitz_ > 0.0)) return 0;
        while (steps < most && std::isfinite(best_.value)) {
            const double before = best_.value;
            const Index made = gradient_steps(period);
            steps += made;
            const double rate = (before - best_.value) / static_cast<double>(made);
            bool paid = false;
            Outcome outcome = Outcome::better;
            while (steps < most && outcome == Outcome::better) {
                const double at = best_.value;
                outcome = newton_step();
                ++steps;
                damping_ = full_
                               ? std::max(kLeastDamping, 0.01 * damping_)
                               : std::min(kMostDamping, std::max(100.0 * damping_, kFirstDamping));
                // Gradient steps of the same cost that do better take over.
                const bool slow = at - best_.value < rate * static_cast<double>(kShortest);
                paid |= outcome == Outcome::better && !slow;
                if (slow && !full_) break;
            }
            if (outcome == Outcome::at_rest) break;
            period = paid ? kShortest : std::min(2 * period, kLongest);
        }
        if (best_.value <= start) std::copy(best_.w.begin(), best_.w.end(), weights);
        return steps;
    }

  private:
    enum class Outcome { better, no_better, at_rest };

    const double* column(Index j) const { return p_.data + j * p_.rows; }

    Vector image(const Vector& w) const {
        Vector sum(as_size(p_.rows));
        for (Index j = 0; j < p_.count; ++j)
            if (w[as_size(j)] != 0.0) add_multiple(sum.data(), w[as_size(j)], column(j), p_.rows);
        return sum;
    }

    // w'Hw for w with this image.
    double square(const Vector& w, const Vector& image) const {
        return p_.gram ? dot(w.data(), image.data(), p_.count)
                       : dot(image.data(), image.data(), p_.rows);
    }

    void differentiate(const Vector& image) {
        for (Index j = 0; j < p_.count; ++j)
            gradient_[as_size(j)] =
                (p_.gram ? image[as_size(j)] : dot(column(j), image.data(), p_.rows)) - p_.pull[j];
    }

    double gauge(const Vector& w) const {
        const double t = root(w, p_.k, 0.0, 0.0);
        if (std::isinf(t)) return std::sqrt(dot(w.data(), w.data(), p_.count));
        double total = 0.0;
        for (const double x : w) {
            const double a = std::fabs(x);
            total += t * a >= 1.0 ? a * a : a / t;
        }
        return std::sqrt(total);
    }

    Point at(Vector w) const {
        Point point;
        point.gauge = gauge(w);
        point.w = std::move(w);
        point.image = image(point.w);
        judge(point);
        return point;
    }

    void judge(Point& point) const {
        const double g = point.gauge;
        point.value = 0.5 * square(point.w, point.image) - dot(p_.pull, point.w.data(), p_.count) +
                      (p_.squared ? 0.5 * p_.level * g * g : p_.level * g);
    }

    // The proximal point of size * penalty at v, with its kinds of entries, t, mu and norm.
    Vector proximal(Vector v, double size, double* gauge) {
        const double amount = size * p_.level;
        const double mu = p_.squared ? amount : multiplier(v, amount);
        double total = 0.0;
        ones_ = 0;
        if (!std::isfinite(mu)) {
            std::fill(v.begin(), v.end(), 0.0);
            std::fill(kinds_.begin(), kinds_.end(), Kind::zero);
            *gauge = 0.0;
            return v;
        }
        t_ = root(v, p_.k, mu, t_);
        for (Index j = 0; j < p_.count; ++j) {
            double& x = v[as_size(j)];
            const double d = std::isinf(t_) ? (x != 0.0 ? 1.0 : 0.0) : t_ * std::fabs(x) - mu;
            const Kind kind = d >= 1.0 ? Kind::one : (d > 0.0 ? Kind::middle : Kind::zero);
            kinds_[as_size(j)] = kind;
            if (kind == Kind::one) {
                ++ones_;
                x /= 1.0 + mu;
                total += x * x;
            } else {
                x = kind == Kind::zero ? 0.0 : x - std::copysign(mu / t_, x);
                total += std::fabs(x) / t_;
            }
        }
        *gauge = std::sqrt(total);
        return v;
    }

    // The mu with mu g(prox of mu/2 g^2 at v) = amount; infinite where the point is zero. Where the
    // pattern stays, that is an equation of two terms.
    double multiplier(const Vector& v, double amount) {
        double low = 0.0, high = kInfinity, t = t_;
        double mu = std::isfinite(mu_) && mu_ > 0.0 ? mu_ : 1.0;
        for (int round = 0; round < kMostRoots; ++round) {
            t = root(v, p_.k, mu, t);
            const Terms terms = pattern(v, mu, t);
            const double value = terms.value(mu);
            (value < amount ? low : high) = mu;
            double next = terms.root(amount, mu);
            if (std::fabs(next - mu) <= 1e-15 * mu) break;
            if (!(next > low && next < high)) {
                if (std::isinf(high) && polar(v) <= amount) return mu_ = kInfinity;
                next =
                    std::isinf(high) ? 4.0 * mu : (low > 0.0 ? std::sqrt(low * high) : 0.25 * mu);
            }
            if (!(next > low && next < high)) break;
            mu = next;
        }
        return mu_ = mu;
    }

    // mu g(mu) for a pattern: the root of the sum of the squares of mu a / (b + mu).
    struct Terms {
        double a[2], b[2];

        double value(double mu) const {
            const double one = mu * a[0] / (b[0] + mu), other = mu * a[1] / (b[1] + mu);
            return std::sqrt(one * one + other * other);
        }
        double root(double amount, double mu) const {
            for (int step = 0; step < kMostRoots; ++step) {
                const double now = value(mu);
                double slope = 0.0;
                for (int e = 0; e < 2; ++e) {
                    const double to = b[e] + mu;
                    slope += a[e] * a[e] * b[e] * mu / (to * to * to);
                }
                const double next = mu + (amount - now) * now / slope;
                if (!(next > 0.0) || !std::isfinite(next)) return next;
                if (std::fabs(next - mu) <= 1e-15 * mu) return next;
                mu = next;
            }
            return mu;
        }
    };

    Terms pattern(const Vector& v, double mu, double t) const {
        if (std::isinf(t)) return {{std::sqrt(dot(v.data(), v.data(), p_.count)), 0.0}, {1.0, 1.0}};
        double squares = 0.0;
        for (const double x : v) squares += t * std::fabs(x) - mu >= 1.0 ? x * x : 0.0;
        const Count found = vectorized<counted>(v.data(), p_.count, t, mu);
        const double share = static_cast<double>(p_.k) - found.ones;
        if (found.middle == 0.0 || !(share > 0.0)) return {{std::sqrt(squares), 0.0}, {1.0, 1.0}};
        const double root = std::sqrt(share);
        return {{std::sqrt(squares), root * found.sum_of_middle / found.middle},
                {1.0, share / found.middle}};
    }

    double polar(Vector z) const {
        const Index k = std::min(p_.k, p_.count);
        std::nth_element(z.begin(), z.begin() + (k - 1), z.end(),
                         [](double a, double b) { return std::fabs(a) > std::fabs(b); });
        return std::sqrt(dot(z.data(), z.data(), k));
    }

    Point stepped(const Vector& v, const Vector& image_there, double size) {
        differentiate(image_there);
        Vector there(v);
        add_multiple(there.data(), -size, gradient_.data(), p_.count);
        return reached(std::move(there), size);
    }

    // The proximal point of `there` with all that is known of it.
    Point reached(Vector there, double size) {
        Point point;
        point.w = proximal(std::move(there), size, &point.gauge);
        point.image = image(point.w);
        judge(point);
        return point;
    }

    Index gradient_steps(Index period) {
        Vector before = best_.w, image_before = best_.image, move(as_size(p_.count));
        double momentum = 1.0;
        for (Index step = 0; step < period; ++step) {
            const double following = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
            const double push = step ? (momentum - 1.0) / following : 0.0;
            const Vector v = beyond(best_.w, before, push);
            const Vector image_there = beyond(best_.image, image_before, push);
            Point next;
            double local = 0.0;
            while (true) {
                next = stepped(v, image_there, 1.0 / lipschitz_);
                move = next.w;
                add_multiple(move.data(), -1.0, v.data(), p_.count);
                const double length = dot(move.data(), move.data(), p_.count);
                Vector image_move = next.image;
                add_multiple(image_move.data(), -1.0, image_there.data(), p_.rows);
                local = length > 0.0 ? square(move, image_move) / length : 0.0;
                if (!(local > lipschitz_ * (1.0 + 1e-9))) break;
                lipschitz_ = std::max(2.0 * lipschitz_, std::min(local, 8.0 * lipschitz_));
            }
            if (!(next.value < best_.value)) {
                if (push == 0.0) return step + 1;
                momentum = 1.0;  // and from here without it
                before = best_.w;
                image_before = best_.image;
                continue;
            }
            momentum = following;
            before.swap(best_.w);
            image_before.swap(best_.image);
            best_ = std::move(next);
        }
        return period;
    }

    static Vector beyond(const Vector& at, const Vector& before, double push) {
        Vector there(at);
        if (push == 0.0) return there;
        for (std::size_t j = 0; j < at.size(); ++j) there[j] += push * (at[j] - before[j]);
        return there;
    }

    Outcome newton_step() {
        const double size = 0.5 / lipschitz_;
        differentiate(best_.image);
        const Vector slope = gradient_;
        Vector start(best_.w);
        add_multiple(start.data(), -size, slope.data(), p_.count);
        double gauge_of_end = 0.0;
        const Vector end = proximal(start, size, &gauge_of_end);
        double largest = 0.0, change = 0.0;
        for (Index j = 0; j < p_.count; ++j) {
            largest = std::max(largest, std::fabs(end[as_size(j)]));
            change = std::max(change, std::fabs(end[as_size(j)] - best_.w[as_size(j)]));
        }
        if (change <= kAtRest * largest) return Outcome::at_rest;
        Vector direction;
        if (!(gauge_of_end > 0.0) || !solve(end, gauge_of_end, direction))
            return Outcome::no_better;
        add_multiple(direction.data(), -1.0, best_.w.data(), p_.count);
        std::optional<Vector> there = search(direction, slope, size);
        if (!there) return Outcome::no_better;
        const double rounding = kRounding * (std::fabs(best_.value) + square(best_.w, best_.image));
        Point trial = reached(std::move(*there), size);
        const double gain = best_.value - trial.value;
        if (gain >= -rounding && (gain > rounding || full_)) best_ = std::move(trial);
        if (gain > rounding) return Outcome::better;
        return gain >= -rounding && full_ ? Outcome::at_rest : Outcome::no_better;
    }

    // Returns w + length d less its gradient step, at the length where the envelope is least
    // (nearly), its slope being increasing; nothing where d does not lead down.
    std::optional<Vector> search(const Vector& direction, const Vector& slope, double size) {
        Vector bend = image(direction);
        if (!p_.gram) {
            const Vector kept = gradient_;
            differentiate(bend);
            bend = gradient_;
            add_multiple(bend.data(), 1.0, p_.pull, p_.count);
            gradient_ = kept;
        }
        Vector there;
        const auto rise = [&](double length) {
            Vector here(best_.w);
            add_multiple(here.data(), length, direction.data(), p_.count);
            there = here;
            for (Index j = 0; j < p_.count; ++j)
                there[as_size(j)] -= size * (slope[as_size(j)] + length * bend[as_size(j)]);
            double gauge = 0.0;
            const Vector ahead = proximal(there, size, &gauge);
            double total = 0.0;
            for (Index j = 0; j < p_.count; ++j)
                total += (here[as_size(j)] - ahead[as_size(j)]) *
                         (direction[as_size(j)] / size - bend[as_size(j)]);
            return total;
        };
        const double start = rise(0.0);
        if (!(start < 0.0)) return std::nullopt;
        double left = 0.0, right = 1.0, left_value = start, right_value = rise(1.0);
        full_ = right_value <= 0.3 * std::fabs(start);
        if (full_) return there;
        for (int round = 0; round < kMostTrials; ++round) {
            double length = right - right_value * (right - left) / (right_value - left_value);
            if (!(left < length && length < right)) length = 0.5 * (left + right);
            const double value = rise(length);
            if (std::fabs(value) <= 0.1 * std::fabs(start)) break;
            if (value < 0.0) {
                left = length;
                left_value = value;
                right_value *= 0.5;
            } else {
                right = length;
                right_value = value;
                left_value *= 0.5;
            }
        }
        return there;
    }

    // Minimises over the pattern of `end`, with the norm's second-order model there (which is the
    // norm itself in the squared form): B x = pull - c u, B = H + c (E - u u'/g^2), u = E end.
    bool solve(const Vector& end, double gauge, Vector& x) {
        std::vector<Index> used;
        for (Index j = 0; j < p_.count; ++j)
            if (kinds_[as_size(j)] != Kind::zero) used.push_back(j);
        const auto size = static_cast<Index>(used.size());
        if (size == 0) return false;
        const double c = p_.squared ? p_.level : p_.level / gauge,
                     budget = static_cast<double>(p_.k - ones_);
        Vector u(as_size(size)), sign(as_size(size)), right(as_size(size));
        Vector matrix(as_size(size * size));
        hessian(used, matrix);
        for (Index i = 0; i < size; ++i) {
            const Index j = used[as_size(i)];
            const bool one = kinds_[as_size(j)] == Kind::one;
            const double at = end[as_size(j)];
            sign[as_size(i)] = one ? 0.0 : std::copysign(1.0, at);
            u[as_size(i)] = one ? at : std::copysign(1.0 / t_, at);
            matrix[as_size(i * size + i)] += one ? c : 0.0;
        }
        const double of_middle = budget > 0.0 ? c / budget : 0.0;
        const double turned = p_.squared ? 0.0 : -c / (gauge * gauge);
        for (Index i = 0; i < size; ++i) {
            double* to = matrix.data() + i * size;
            add_multiple(to, of_middle * sign[as_size(i)], sign.data(), size);
            add_multiple(to, turned * u[as_size(i)], u.data(), size);
        }
        for (double damping = damping_; damping <= 1.0; damping *= 1e3) {
            Vector factor(matrix);
            for (Index i = 0; i < size; ++i) {
                const Index j = used[as_size(i)];
                factor[as_size(i * size + i)] += damping * lipschitz_;
                right[as_size(i)] = p_.pull[j] + damping * lipschitz_ * best_.w[as_size(j)] -
                                    (p_.squared ? 0.0 : c * u[as_size(i)]);
            }
            if (!blas::cholesky(size, factor.data(), size)) continue;
            blas::cholesky_solve(size, factor.data(), size, right.data());
            x.assign(as_size(p_.count), 0.0);
            for (Index i = 0; i < size; ++i) x[as_size(used[as_size(i)])] = right[as_size(i)];
            return std::isfinite(dot(right.data(), right.data(), size));
        }
        return false;
    }

    void hessian(const std::vector<Index>& used, Vector& matrix) const {
        const auto size = static_cast<Index>(used.size());
        if (p_.gram) {
            for (Index i = 0; i < size; ++i)
                for (Index l = i; l < size; ++l)
                    matrix[as_size(i * size + l)] = column(used[as_size(i)])[used[as_size(l)]];
            return;
        }
        Vector taken(as_size(size * p_.rows));
        for (Index i = 0; i < size; ++i)
            std::copy_n(column(used[as_size(i)]), p_.rows, taken.data() + i * p_.rows);
        blas::add_gram(size, p_.rows, 1.0, taken.data(), p_.rows, 0.0, matrix.data(), size);
    }

    const SupportQuadratic& p_;
    Point best_;
    Vector gradient_;
    std::vector<Kind> kinds_;
    double lipschitz_ = 0.0, t_ = 0.0, mu_ = 0.0, damping_ = kLeastDamping;
    bool full_ = false;  // whether the last Newton step went all the way
    Index ones_ = 0;
};

}  // namespace

Index ksupport_newton(const SupportQuadratic& problem, double* weights, Index most) {
    return Fit(problem).run(weights, most);
}

}  // namespace atomlearn
