// Accelerated proximal gradient steps find the pattern: which entries have d = 1, 0 < d < 1 or
// d = 0 in g(w)^2 = min sum w_j^2 / d_j. Of max(||w||_2, ||w||_1 / sqrt k) the entries of the
// support have d = 1 where the l2 norm is the larger one, 0 < d < 1 where it is the l1 norm; where
// they are equal, they stay so. Newton steps jump to where a pattern is optimal; a search
// on the forward-backward envelope cuts them short where the pattern changes on the way.
#include <cmath>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "elastic_net.hpp"
#include "ksupport.hpp"
#include "newton.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

// Of the Newton system, in units of L: after a step cut short, and when steps are whole again.
constexpr double kLeastDamping = 1e-10, kFirstDamping = 1e-4, kMostDamping = 1e-1;
constexpr Index kGradientSteps = 24;  // before Newton steps, where so many are allowed

using Numbers = std::vector<double>;

// min over w of 1/2 w'Hw - pull'w + level g(w), or + level/2 g(w)^2 where `squared`, g the
// k-support norm, or, where `elastic`, max(||w||_2, ||w||_1 / sqrt k) for any k >= 1. Where `least`
// > 0, 1/2 level g^2 is min 1/2 level sum w_j^2 / d_j + level/2 least^2 sum d_j over 0 <= d <= 1,
// sum d <= k: then d_j = 1 from |w_j| = least on. H = A'A for the `rows` x `count` matrix `data`
// stored by columns; where `gram`, `data` is H itself and rows = count.
struct Quadratic {
    const double* data;
    Index rows;
    Index count;
    bool gram;
    const double* pull;
    double k;
    double level;
    bool squared;
    bool elastic = false;
    double least = 0.0;

    Index whole_k() const { return static_cast<Index>(k); }
};

enum class Kind : signed char { zero, middle, one };

// A point with H w (or A w), its norm and what is minimised.
struct Point {
    Numbers w, image;
    double gauge = 0.0, value = 0.0;
};

class Fit {
  public:
    explicit Fit(const Quadratic& problem)
        : p_(problem), gradient_(as_size(p_.count)), kinds_(as_size(p_.count)) {
        for (Index j = 0; j < p_.count; ++j)
            lipschitz_ =
                std::max(lipschitz_, p_.gram ? column(j)[j] : dot(column(j), column(j), p_.rows));
    }

    Index run(double* weights, Index most) {
        best_ = at(Numbers(weights, weights + p_.count));
        const double start = best_.value;
        Index steps = 0;
        if (!(lipschitz_ > 0.0)) return 0;
        while (steps < most && std::isfinite(best_.value)) {
            steps += gradient_steps(std::min(kGradientSteps, (most + 1) / 2));
            Outcome outcome = Outcome::better;
            while (steps < most && outcome == Outcome::better) {
                outcome = newton_step();
                ++steps;
                damping_ = full_
                               ? std::max(kLeastDamping, 0.01 * damping_)
                               : std::min(kMostDamping, std::max(100.0 * damping_, kFirstDamping));
            }
            if (outcome == Outcome::at_rest) break;
        }
        if (best_.value <= start) std::copy(best_.w.begin(), best_.w.end(), weights);
        return steps;
    }

  private:
    enum class Outcome { better, no_better, at_rest };

    const double* column(Index j) const { return p_.data + j * p_.rows; }

    Numbers image(const Numbers& w) const {
        Numbers sum(as_size(p_.rows)), factors;
        std::vector<Index> used;
        for (Index j = 0; j < p_.count; ++j) {
            if (w[as_size(j)] == 0.0) continue;
            used.push_back(j);
            factors.push_back(-w[as_size(j)]);
        }
        subtract_rows(sum.data(), p_.data, p_.rows, used.data(), factors.data(),
                      static_cast<Index>(used.size()), p_.rows);
        return sum;
    }

    // w'Hw for w with this image.
    double square(const Numbers& w, const Numbers& image) const {
        return p_.gram ? dot(w.data(), image.data(), p_.count)
                       : dot(image.data(), image.data(), p_.rows);
    }

    // H w for w with this image.
    Numbers curved(Numbers image) const {
        if (p_.gram) return image;
        Numbers product(as_size(p_.count));
        blas::transposed_product(p_.rows, p_.count, p_.data, p_.rows, image.data(), product.data());
        return product;
    }

    void differentiate(const Numbers& image) {
        gradient_ = curved(image);
        add_multiple(gradient_.data(), -1.0, p_.pull, p_.count);
    }

    Point at(Numbers w) const {
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

    double gauge(const Numbers& w) const {
        if (p_.elastic) return elastic_gauge(w, p_.k);
        const double least = p_.least, plain = ksupport_gauge(w.data(), p_.count, p_.whole_k());
        if (least == 0.0) return plain;
        double total = 0.0, shares = 0.0;
        for (const double x : w) {
            const double share = std::min(1.0, std::fabs(x) / least);
            shares += share;
            total += share < 1.0 ? 2.0 * least * std::fabs(x) : x * x + least * least;
        }
        return std::sqrt(shares < p_.k ? total : plain * plain + least * least * p_.k);
    }

    // The proximal point of size * penalty at v, with its kinds of entries and its norm.
    Numbers proximal(Numbers v, double size, double* gauge) {
        const double amount = size * p_.level;
        if (p_.elastic) return elastic_proximal(std::move(v), amount, gauge);
        const Index k = p_.whole_k();
        double total = 0.0;
        ones_ = 0;
        if (!p_.squared && polar(v) <= amount) {
            std::fill(v.begin(), v.end(), 0.0);
            std::fill(kinds_.begin(), kinds_.end(), Kind::zero);
            *gauge = 0.0;
            return v;
        }
        if (!p_.squared) mu_ = ksupport_multiplier(v.data(), p_.count, k, amount, true, 1.0 / mu_);
        const double mu = p_.squared ? amount : mu_;
        Scaled at = ksupport_root(v.data(), p_.count, k, mu, x_);
        priced_ = at.x.high < p_.least;
        if (priced_)
            at = {DoubleDouble{p_.least, 0.0}, DoubleDouble{mu * p_.least, 0.0},
                  DoubleDouble{(1.0 + mu) * p_.least, 0.0}};
        x_ = at.x.high;
        const double each = priced_ ? p_.least * p_.least : 0.0;
        for (Index j = 0; j < p_.count; ++j) {
            double& x = v[as_size(j)];
            const double a = std::fabs(x), above = (a - at.theta.high) - at.theta.low;
            const Kind kind = !(above > 0.0)      ? Kind::zero
                              : a >= at.full.high ? Kind::one
                                                  : Kind::middle;
            kinds_[as_size(j)] = kind;
            if (kind == Kind::one) {
                ++ones_;
                x /= 1.0 + mu;
                total += x * x + each;
            } else {
                x = kind == Kind::zero ? 0.0 : std::copysign(above, x);
                total += std::fabs(x) * x_ * (priced_ ? 2.0 : 1.0);
            }
        }
        if (!priced_) total += p_.least * p_.least * p_.k;
        *gauge = std::sqrt(total);
        return v;
    }

    Numbers elastic_proximal(Numbers v, double amount, double* gauge) {
        const ElasticPoint at = elastic_point(v, p_.k, amount, p_.squared);
        *gauge = at.gauge;
        share_ = at.share < 1.0 ? at.share : 0.0;
        x_ = at.gauge / std::sqrt(p_.k);
        ones_ = at.share < 1.0 ? p_.count : 0;
        for (Index j = 0; j < p_.count; ++j)
            kinds_[as_size(j)] = v[as_size(j)] == 0.0 ? Kind::zero
                                 : ones_ > 0          ? Kind::one
                                                      : Kind::middle;
        return v;
    }

    double polar(Numbers z) const {
        std::nth_element(z.begin(), z.begin() + (p_.whole_k() - 1), z.end(),
                         [](double a, double b) { return std::fabs(a) > std::fabs(b); });
        return std::sqrt(dot(z.data(), z.data(), p_.whole_k()));
    }

    Point stepped(const Numbers& v, const Numbers& image_there, double size) {
        differentiate(image_there);
        Numbers there(v);
        add_multiple(there.data(), -size, gradient_.data(), p_.count);
        return reached(std::move(there), size);
    }

    // The proximal point of `there` with all that is known of it.
    Point reached(Numbers there, double size) {
        Point point;
        point.w = proximal(std::move(there), size, &point.gauge);
        point.image = image(point.w);
        judge(point);
        return point;
    }

    Index gradient_steps(Index count) {
        Numbers before = best_.w, image_before = best_.image, move(as_size(p_.count));
        double momentum = 1.0;
        for (Index step = 0; step < count; ++step) {
            const double following = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
            const double push = step ? (momentum - 1.0) / following : 0.0;
            const Numbers v = beyond(best_.w, before, push);
            const Numbers image_there = beyond(best_.image, image_before, push);
            Point next;
            double local = 0.0;
            while (true) {
                next = stepped(v, image_there, 1.0 / lipschitz_);
                move = next.w;
                add_multiple(move.data(), -1.0, v.data(), p_.count);
                const double length = dot(move.data(), move.data(), p_.count);
                Numbers image_move = next.image;
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
        return count;
    }

    static Numbers beyond(const Numbers& at, const Numbers& before, double push) {
        Numbers there(at);
        if (push == 0.0) return there;
        for (std::size_t j = 0; j < at.size(); ++j) there[j] += push * (at[j] - before[j]);
        return there;
    }

    Outcome newton_step() {
        const double size = 0.5 / lipschitz_;
        differentiate(best_.image);
        const Numbers slope = gradient_;
        Numbers start(best_.w);
        add_multiple(start.data(), -size, slope.data(), p_.count);
        double gauge_of_end = 0.0;
        const Numbers end = proximal(start, size, &gauge_of_end);
        double largest = 0.0, change = 0.0;
        for (Index j = 0; j < p_.count; ++j) {
            largest = std::max(largest, std::fabs(end[as_size(j)]));
            change = std::max(change, std::fabs(end[as_size(j)] - best_.w[as_size(j)]));
        }
        if (change <= kAtRest * largest) return Outcome::at_rest;
        Numbers direction;
        if (!(gauge_of_end > 0.0) || !solve(end, gauge_of_end, direction))
            return Outcome::no_better;
        add_multiple(direction.data(), -1.0, best_.w.data(), p_.count);
        std::optional<Numbers> there = search(direction, slope, size);
        if (!there) return Outcome::no_better;
        const double rounding = kNoise * (std::fabs(best_.value) + square(best_.w, best_.image));
        Point trial = reached(std::move(*there), size);
        const double gain = best_.value - trial.value;
        if (gain >= -rounding && (gain > rounding || full_)) best_ = std::move(trial);
        if (gain > rounding) return Outcome::better;
        return gain >= -rounding && full_ ? Outcome::at_rest : Outcome::no_better;
    }

    // Returns w + length d less its gradient step, at the length where the envelope is least
    // (nearly), its slope being increasing; nothing where d does not lead down.
    std::optional<Numbers> search(const Numbers& direction, const Numbers& slope, double size) {
        const Numbers bend = curved(image(direction));
        Numbers there;
        const auto rise = [&](double length) {
            Numbers here(best_.w);
            add_multiple(here.data(), length, direction.data(), p_.count);
            there = here;
            for (Index j = 0; j < p_.count; ++j)
                there[as_size(j)] -= size * (slope[as_size(j)] + length * bend[as_size(j)]);
            double gauge = 0.0;
            const Numbers ahead = proximal(there, size, &gauge);
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
        for (int round = 0; round < kHalvings; ++round) {
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
    bool solve(const Numbers& end, double gauge, Numbers& x) {
        std::vector<Index> used;
        for (Index j = 0; j < p_.count; ++j)
            if (kinds_[as_size(j)] != Kind::zero) used.push_back(j);
        const auto size = static_cast<Index>(used.size());
        if (size == 0) return false;
        const double c = p_.squared ? p_.level : p_.level / gauge,
                     budget = p_.k - static_cast<double>(ones_);
        // Where the columns are more than the rows and d = 1, the system is one of the rows.
        const bool wide = !p_.gram && size > p_.rows && ones_ >= size;
        const Index order = wide ? p_.rows : size;
        const double own = c * (1.0 - share_);
        // The right side, u, and where the norms are equal the direction that takes them apart.
        const Index sides = share_ > 0.0 ? 3 : 2;
        Numbers given(as_size(sides * size)), sign(as_size(size));
        double* u = given.data() + size;
        double* apart = u + size;
        Numbers matrix(as_size(order * order)), taken;
        hessian(used, wide, taken, matrix);
        for (Index i = 0; i < size; ++i) {
            const Index j = used[as_size(i)];
            const bool one = kinds_[as_size(j)] == Kind::one;
            const double at = end[as_size(j)];
            sign[as_size(i)] = one ? 0.0 : std::copysign(1.0, at);
            u[i] = one ? at : std::copysign(x_, at);
            if (sides == 3) apart[i] = std::copysign(1.0, at) - std::sqrt(p_.k) * u[i] / gauge;
            if (!wide) matrix[as_size(i * size + i)] += one ? own : 0.0;
        }
        const double of_middle = budget > 0.0 && !priced_ ? c / budget : 0.0;
        const double slope = priced_ ? c * p_.least : 0.0;
        const double turned = c * (p_.squared ? share_ : share_ - 1.0) / (gauge * gauge);
        for (Index i = 0; !wide && i < size; ++i)
            add_multiple(matrix.data() + i * size, of_middle * sign[as_size(i)], sign.data(), size);
        for (double damping = damping_; damping <= 1.0; damping *= 1e3) {
            Numbers factor(matrix);
            const double more = damping * lipschitz_, whole = own + more;
            for (Index i = 0; i < order; ++i) factor[as_size(i * order + i)] += wide ? whole : more;
            for (Index i = 0; i < size; ++i) {
                const Index j = used[as_size(i)];
                given[as_size(i)] = p_.pull[j] + more * best_.w[as_size(j)] -
                                    (p_.squared ? slope * sign[as_size(i)] : c * u[i]);
            }
            if (!blas::cholesky(order, factor.data(), order)) continue;
            Numbers ways(given), image(as_size(wide ? sides * order : 0));
            for (Index i = 0; wide && i < sides * size; ++i)
                add_multiple(image.data() + i / size * order, ways[as_size(i)],
                             taken.data() + i % size * order, order);
            blas::cholesky_solve(order, factor.data(), order, (wide ? image : ways).data(), sides);
            for (Index i = 0; wide && i < sides * size; ++i)
                ways[as_size(i)] -=
                    dot(taken.data() + i % size * order, image.data() + i / size * order, order);
            for (double& way : ways) way /= wide ? whole : 1.0;
            // Takes off v what a term q q' / extra of the system does; of 0 it leaves q'v = 0.
            const auto correct = [size](double* v, const double* q, double extra,
                                        const double* way) {
                const double bend = extra + dot(q, way, size);
                if (bend != 0.0) add_multiple(v, -dot(q, v, size) / bend, way, size);
            };
            double* found = ways.data();
            for (Index side = 0; turned != 0.0 && side < sides; side += 2)
                correct(found + side * size, u, 1.0 / turned, found + size);
            // The norms stay equal, to first order.
            if (sides == 3) correct(found, apart, 0.0, found + 2 * size);
            x.assign(as_size(p_.count), 0.0);
            for (Index i = 0; i < size; ++i) x[as_size(used[as_size(i)])] = found[i];
            return std::isfinite(dot(found, found, size));
        }
        return false;
    }

    // A'A over the columns used, or AA' where wide.
    void hessian(const std::vector<Index>& used, bool wide, Numbers& taken, Numbers& matrix) const {
        const auto size = static_cast<Index>(used.size());
        if (p_.gram) {
            for (Index i = 0; i < size; ++i)
                for (Index l = i; l < size; ++l)
                    matrix[as_size(i * size + l)] = column(used[as_size(i)])[used[as_size(l)]];
            return;
        }
        taken.resize(as_size(size * p_.rows));
        for (Index i = 0; i < size; ++i)
            std::copy_n(column(used[as_size(i)]), p_.rows, taken.data() + i * p_.rows);
        if (wide)
            blas::add_outer(p_.rows, size, 1.0, taken.data(), p_.rows, 0.0, matrix.data(), p_.rows);
        else
            blas::add_gram(size, p_.rows, 1.0, taken.data(), p_.rows, 0.0, matrix.data(), size);
    }

    const Quadratic& p_;
    Point best_;
    Numbers gradient_;
    std::vector<Kind> kinds_;
    double lipschitz_ = 0.0, x_ = 0.0, mu_ = 1.0, damping_ = kLeastDamping;
    bool priced_ = false;  // whether d is decided by the price of each entry, and not by k
    bool full_ = false;    // whether the last Newton step went all the way
    Index ones_ = 0;
    double share_ = 0.0;  // of the subgradient that is the l1 norm's where the norms are equal
};

// Moves `weights` to where rounding ends the steps, or for the most steps. Returns the number of
// steps; the point is never worse than the start. `data`: H, or A by columns.
Index pattern_newton(const DoubleMatrix& data, bool gram, const Doubles& pull, double k,
                     double level, bool squared, bool elastic, const OutDoubles& weights,
                     Index most) {
    const Quadratic problem{data.data(), size_of(data), size_of(data, 1), gram,   pull.data(),
                            k,           level,         squared,          elastic};
    return Fit(problem).run(weights.data(), most);
}

// Cholesky factor of a matrix that is positive but for rounding: its diagonal grows by a few
// roundings, and by more until it can be factored.
void factor_damped(Numbers& matrix, Index size) {
    const Numbers given(matrix);
    double damping = 0.0;
    while (!blas::cholesky(size, matrix.data(), size)) {
        damping = std::max(10.0 * damping, 1e-16 * static_cast<double>(size));
        expect(damping < 1.0, "H must be finite, its diagonal positive");
        matrix = given;
        for (Index i = 0; i < size; ++i) matrix[as_size(i * size + i)] *= 1.0 + damping;
    }
}

// min over w of 1/2 w'Hw - pull'w + level/2 (||w_in||^2 + g(w_free)^2), g with `least`, over some
// rows and columns of a symmetric H; `weights`: of what is free, then of what is in, all that is in
// being minimized out first. Returns the number of steps.
Index branch_newton(const DoubleMatrix& H, const Positions& free, const Positions& inside,
                    const Doubles& pull, Index k, double level, double least,
                    const OutDoubles& weights, Index most) {
    const Index count = size_of(free), fixed = size_of(inside), stride = H.stride(0);
    expect_within(free, size_of(H));
    expect_within(inside, size_of(H));
    expect(size_of(weights) == count + fixed && size_of(pull) == size_of(H), "sizes must agree");
    const auto entry = [&](Index i, Index j) { return H.data()[i * stride + j]; };
    Numbers own(as_size(fixed * fixed)), across(as_size(fixed * count)), alone(as_size(fixed));
    Numbers reduced(as_size(count * count)), rest(as_size(count));
    for (Index i = 0; i < fixed; ++i) {
        alone[as_size(i)] = pull.data()[inside.data()[i]];
        for (Index j = 0; j < fixed; ++j)
            own[as_size(i * fixed + j)] = entry(inside.data()[i], inside.data()[j]);
        own[as_size(i * fixed + i)] += level;
    }
    for (Index j = 0; j < count; ++j) {
        const double* from = H.data() + free.data()[j] * stride;
        rest[as_size(j)] = pull.data()[free.data()[j]];
        for (Index i = 0; i < fixed; ++i) across[as_size(j * fixed + i)] = from[inside.data()[i]];
        for (Index i = j; i < count; ++i) reduced[as_size(j * count + i)] = from[free.data()[i]];
    }
    if (fixed > 0) factor_damped(own, fixed);
    double* w = weights.data();
    Index steps = 0;
    if (count > 0 && k > 0) {
        if (fixed > 0) {
            Numbers moved(as_size(count));
            Numbers inner(across), line(alone);
            blas::solve_lower(fixed, count, own.data(), fixed, inner.data(), fixed);
            blas::solve_lower(fixed, 1, own.data(), fixed, line.data(), fixed);
            blas::add_gram(count, fixed, -1.0, inner.data(), fixed, 1.0, reduced.data(), count);
            blas::transposed_product(fixed, count, inner.data(), fixed, line.data(), moved.data());
            add_multiple(rest.data(), -1.0, moved.data(), count);
        }
        for (Index j = 0; j < count; ++j)
            for (Index i = j + 1; i < count; ++i)
                reduced[as_size(i * count + j)] = reduced[as_size(j * count + i)];
        const double most_ones = static_cast<double>(std::min(k, count));
        const Quadratic problem{reduced.data(), count, count, true,  rest.data(),
                                most_ones,      level, true,  false, least};
        steps = Fit(problem).run(w, most);
    } else {
        std::fill_n(w, count, 0.0);
    }
    if (fixed == 0) return steps;
    for (Index j = 0; j < count; ++j)
        if (w[j] != 0.0) add_multiple(alone.data(), -w[j], across.data() + j * fixed, fixed);
    blas::cholesky_solve(fixed, own.data(), fixed, alone.data());
    std::copy(alone.begin(), alone.end(), w + count);
    return steps;
}

}  // namespace

void bind_pattern_newton(nb::module_& m) {
    define(m, "pattern_newton", &pattern_newton);
    define(m, "branch_newton", &branch_newton);
}

}  // namespace atomlearn
