// A sample brackets the root of the equation; one pass then settles every entry whose d is 0, 1 or
// strictly between on the whole bracket, and keeps the others; a few hundred are left after two or
// three rounds. Settling only uses comparisons that rounding cannot spoil, and the last step is
// done in double-double, so the root is exact to the last digits whatever the input. Then
//     prox(v) = sign(v) clip(a - theta, 0, a/(1 + s));      s = 0 gives the gauge.
#include "ksupport.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "sampling.hpp"

namespace atomlearn {
namespace {

constexpr Index kFewEnough = 1024;  // Newton's steps on these cost less than another round

// Magnitudes that decide, for a bracket [low, high] of x, what an entry certainly is.
struct Cuts {
    double zero;        // a <= zero: d = 0
    double middle_low;  // middle_low <= a <= middle_high: 0 < d < 1
    double middle_high;
    double saturated;  // a >= saturated: d = 1
    Cuts(double low, double high, double step)
        : zero(step * low * (1 - kNoise)),
          middle_low(step > 0 ? step * high * (1 + kNoise) : 0.0),
          middle_high((1 + step) * low * (1 - kNoise)),
          saturated((1 + step) * high * (1 + kNoise)) {
        // x = 0 settles the zeros only, and for s = 0 they are all that never counts.
        if (step == 0.0) zero = 0.0;
    }
};

// Entries that are settled: their d is 1, or a/x - s on the whole bracket.
struct Settled {
    Index n_saturated = 0;
    Index n_middle = 0;
    DoubleDouble middle_sum;
    Settled operator+(const Settled& other) const {
        return {n_saturated + other.n_saturated, n_middle + other.n_middle,
                middle_sum + other.middle_sum};
    }
};

struct Sorted {
    Settled settled;
    Index n_undecided = 0;
    double largest = 0.0;  // infinity where an entry is not finite
};

constexpr Index kBlock = LaneSum::kLanes;

// Settles what the cuts settle and copies the rest to `undecided` (room for range.size()).
template <class T>
ATOMLEARN_INLINE void sort_out(const T* v, Index n, const Cuts& cuts, double* undecided,
                               Sorted& result) {
    LaneSum middle_sum;
    double largest[kBlock] = {};
    Index n_saturated = 0, n_middle = 0, n_undecided = 0;
    int not_finite = 0;
    const double zero = cuts.zero, middle_low = cuts.middle_low;
    const double middle_high = cuts.middle_high, saturated = cuts.saturated;
    T padded[kBlock] = {};
    for (Index start = 0; start < n; start += kBlock) {
        const T* block = v + start;
        if (n - start < kBlock) {
            std::copy(v + start, v + n, padded);
            block = padded;
        }
        int hit = 0;
#pragma omp simd reduction(| : hit)
        for (int e = 0; e < kBlock; ++e) hit |= !(std::fabs(double(block[e])) <= zero);
        if (!hit) continue;
        int open = 0;
        double magnitudes[kBlock];
#pragma omp simd reduction(| : open, not_finite) reduction(+ : n_saturated, n_middle)
        for (int e = 0; e < kBlock; ++e) {
            const double a = std::fabs(double(block[e]));
            magnitudes[e] = a;
            const bool is_saturated = a >= saturated;
            const bool is_middle = (a > zero) & (a >= middle_low) & (a <= middle_high);
            not_finite |= !(a <= kLargest);
            largest[e] = a > largest[e] ? a : largest[e];
            n_saturated += is_saturated;
            n_middle += is_middle;
            open |= !(is_saturated | is_middle | (a <= zero));
            add(middle_sum, e, is_middle ? a : 0.0);
        }
        if (!open) continue;
        for (int e = 0; e < kBlock; ++e) {
            const double a = magnitudes[e];
            undecided[n_undecided] = a;
            n_undecided +=
                (a > zero) & !(a >= saturated) & !((a >= middle_low) & (a <= middle_high));
        }
    }
    result = {{n_saturated, n_middle, middle_sum.total()}, n_undecided, not_finite ? kInfinity : 0};
    for (int e = 0; e < kBlock; ++e) result.largest = std::max(result.largest, largest[e]);
}

// Settles entries at one x by exact comparisons with zero = s x and full = (1 + s) x; `n` is a
// multiple of the block, padded with zeros.
ATOMLEARN_INLINE void settle_at(const double* open, Index n, DoubleDouble zero, DoubleDouble full,
                                Settled& result) {
    LaneSum middle_sum;
    Index n_saturated = 0, n_middle = 0;
    const bool zero_below = zero.low < 0.0, full_at = full.low <= 0.0;
    for (Index start = 0; start < n; start += kBlock) {
#pragma omp simd reduction(+ : n_saturated, n_middle)
        for (int e = 0; e < kBlock; ++e) {
            const double a = open[start + e];
            const bool above_zero = (a > zero.high) | ((a == zero.high) & zero_below);
            const bool is_saturated = (a > full.high) | ((a == full.high) & full_at);
            const bool is_middle = above_zero & !is_saturated;
            n_saturated += above_zero & is_saturated;
            n_middle += is_middle;
            add(middle_sum, e, is_middle ? a : 0.0);
        }
    }
    result = {n_saturated, n_middle, middle_sum.total()};
}

// S(x) over the undecided, with every difference a - theta rounded once (a ~ theta at large s).
ATOMLEARN_INLINE double open_sum(const double* a, Index n, double high, double low, double x) {
    double sum = 0.0;
    const double inverse = 1.0 / x;
#pragma omp simd reduction(+ : sum)
    for (Index e = 0; e < n; ++e) {
        const double d = ((a[e] - high) - low) * inverse;
        sum += d < 0.0 ? 0.0 : (d > 1.0 ? 1.0 : d);
    }
    return sum;
}

template <class T>
ATOMLEARN_INLINE bool shrink_range(const T* v, Index n, double high, double low, double shrink,
                                   T* w) {
    int not_finite = 0;
#pragma omp simd reduction(| : not_finite)
    for (Index e = 0; e < n; ++e) {
        const double a = std::fabs(double(v[e]));
        const double thresholded = (a - high) - low, shrunk = a * shrink;
        const double least = thresholded < shrunk ? thresholded : shrunk;
        not_finite |= !(a <= kLargest);
        w[e] = std::copysign(static_cast<T>(least > 0.0 ? least : 0.0), v[e]);
    }
    return not_finite == 0;
}

// Squares of the entries >= level, which count as saturated.
struct Above {
    LaneSum squares;
    Index count = 0;
};

template <class T>
ATOMLEARN_INLINE void add_above(const T* w, Index n, double level, Above& above) {
    Index count = 0;
    for (Index start = 0; start < n; start += kBlock) {
        const Index size = std::min(kBlock, n - start);
#pragma omp simd reduction(+ : count)
        for (int e = 0; e < size; ++e) {
            const double a = std::fabs(double(w[start + e]));
            count += a >= level;
            add(above.squares, e, a >= level ? a * a : 0.0);
        }
    }
    above.count = count;
}

// The largest magnitude; infinity where an entry is not finite.
template <class T>
ATOMLEARN_INLINE double largest_of(const T* w, Index n) {
    double largest = 0.0;
    int not_finite = 0;
#pragma omp simd reduction(max : largest) reduction(| : not_finite)
    for (Index e = 0; e < n; ++e) {
        const double a = std::fabs(double(w[e]));
        not_finite |= !(a <= kLargest);
        largest = a > largest ? a : largest;
    }
    return not_finite ? kInfinity : largest;
}

// Calls body(range, part, result) on pieces of n entries, one a thread; returns the results.
template <class Result, class Body>
std::vector<Result> by_pieces(Index n, Body&& body) {
    const int threads = threads_for(kCostly * n);
    std::vector<Result> results(as_size(threads));
    in_parallel(threads, [&](int part) {
        body(piece(n, part, threads, kBlock), part, results[as_size(part)]);
    });
    return results;
}

// S(x) = sum d as a sample of the open entries estimates it.
struct Sample {
    std::vector<double> sorted;
    std::vector<double> sums;  // of the first entries
    double weight;             // entries that one of the sample stands for
    double step;
    const Settled& settled;

    Sample(std::vector<double> magnitudes, double weight_, double step_, const Settled& settled_)
        : sorted(std::move(magnitudes)),
          sums(sorted.size() + 1),
          weight(weight_),
          step(step_),
          settled(settled_) {
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t e = 0; e < sorted.size(); ++e) sums[e + 1] = sums[e] + sorted[e];
    }
    Index rank(double level) const {
        return std::lower_bound(sorted.begin(), sorted.end(), level) - sorted.begin();
    }
    double estimate(double x) const {
        const Index first = rank(step * x), last = std::max(first, rank((1 + step) * x));
        const double middle =
            (sums[last] - sums[first]) / x - step * static_cast<double>(last - first);
        const double saturated = static_cast<double>(static_cast<Index>(sorted.size()) - last);
        return weight * (middle + saturated) + static_cast<double>(settled.n_saturated) +
               (settled.middle_sum.high / x - step * static_cast<double>(settled.n_middle));
    }
    // Standard deviation of the estimate, no smaller than the strata of the sample leave it.
    double deviation(double x) const {
        double sum = 0.0, squares = 0.0;
        for (auto a = sorted.rbegin(); a != sorted.rend(); ++a) {
            const double d = std::min(*a / x - step, 1.0);
            if (d <= 0.0) break;
            sum += d;
            squares += d * d;
        }
        return weight * std::sqrt(std::max(squares - sum * sum / sorted.size(), 0.0));
    }
    // The x in [low, high] where the estimate passes `target`.
    double solve(double target, double low, double high) const {
        if (!(estimate(high) < target)) return high;
        if (!(estimate(low) > target)) return low;
        for (int round = 0; round < 80 && high > low * (1 + 1e-13); ++round) {
            const double middle = std::sqrt(low) * std::sqrt(high);
            if (!(middle > low && middle < high)) break;
            (estimate(middle) > target ? low : high) = middle;
        }
        return high;
    }
};

class Equation {
  public:
    Equation(Index k, double step) : k_(k), step_(step) {}

    // The root; 0 where at most k entries are non-zero, NaN where one is not finite.
    template <class T>
    DoubleDouble solve(const T* v, Index n, double guess) {
        n_open_ = n;
        // Rounds, until one hardly narrows: then with a wider bracket, at last with none.
        for (double margin = 3.0; n_open_ > kFewEnough && margin < 30.0;)
            if (!(open_ ? narrow(open_.get(), margin) : narrow(v, margin))) margin *= 3.0;
        if (!open_) keep(split(v, low_, high_));
        if (!(largest_ <= kLargest)) return {std::nan(""), 0.0};
        if (low_ == 0.0 && settled_.n_middle == 0 && settled_.n_saturated + n_open_ <= k_)
            return {};
        return by_newton(guess);
    }
    double largest() const { return largest_; }

  private:
    // +1 where S(x) > k for certain, -1 where S(x) < k for certain, 0 where rounding might decide.
    int side(double x, const Settled& settled, Index n) const {
        const DoubleDouble theta = two_product(step_, x);
        const DoubleDouble middle =
            (settled.middle_sum - theta * static_cast<double>(settled.n_middle)) /
            DoubleDouble{x, 0};
        const double open_part = vectorized<open_sum>(next_.get(), n, theta.high, theta.low, x);
        const double room = static_cast<double>(k_ - settled.n_saturated);
        const double excess = (middle.high - room) + open_part;
        const double scale = std::fabs(middle.high) + std::fabs(room) + open_part;
        const double error = 1e-15 * static_cast<double>(n + 16) * scale;
        return excess > error ? 1 : (excess < -error ? -1 : 0);
    }

    // The open entries that stay open on a bracket into next_, and what is settled of the others.
    template <class T>
    Sorted split(const T* list, double low, double high) {
        const Index n = n_open_;
        const Cuts cuts(low, high, step_);
        // A block of slack a thread: undecided entries are written before they are counted.
        next_.reset(new double[as_size(n + kBlock * (threads_for(kCostly * n) + 1))]);
        double* to = next_.get();
        const auto parts = by_pieces<Sorted>(n, [&](Range range, int part, Sorted& sorted) {
            vectorized<sort_out<T>>(list + range.begin, range.size(), cuts,
                                    to + range.begin + part * kBlock, sorted);
        });
        Sorted all;
        const Index count = static_cast<Index>(parts.size());
        for (Index part = 0; part < count; ++part) {
            const Sorted& one = parts[as_size(part)];
            const double* from = to + piece(n, part, count, kBlock).begin + part * kBlock;
            std::copy(from, from + one.n_undecided, to + all.n_undecided);
            all = {all.settled + one.settled, all.n_undecided + one.n_undecided,
                   std::max(all.largest, one.largest)};
        }
        largest_ = std::max(largest_, all.largest);
        return all;
    }

    void keep(const Sorted& sorted) {
        settled_ = settled_ + sorted.settled;
        n_open_ = sorted.n_undecided;
        open_.swap(next_);
    }

    // Settles what a bracket of probably the root settles. False where it does not hold the root
    // for certain, or leaves most entries open.
    template <class T>
    bool narrow(const T* list, double margin) {
        double low = low_, high = high_;
        bracket(list, margin, low, high);
        const Sorted sorted = split(list, low, high);
        const Settled settled = settled_ + sorted.settled;
        if (low > low_ && side(low, settled, sorted.n_undecided) <= 0) return false;
        if (high < high_ && side(high, settled, sorted.n_undecided) >= 0) return false;
        const bool few = 2 * sorted.n_undecided <= n_open_;
        low_ = low, high_ = high;
        keep(sorted);
        return few;
    }

    // Narrows [low_, high_] to a [low, high] that probably holds the root, where a sample can tell.
    template <class T>
    void bracket(const T* list, double margin, double& low, double& high) const {
        const Index n = n_open_, size = std::min(n / 4, std::clamp<Index>(n / 128, 768, 16384));
        const Sample sample(sampled_magnitudes<double, T>(list, n, size),
                            static_cast<double>(n) / static_cast<double>(size), step_, settled_);
        const Index first = sample.rank(std::numeric_limits<double>::min());
        if (first == size && settled_.n_middle == 0) return;
        // Ends for the search where there are none yet: S = 0 above, all saturated below.
        double top = high_, bottom = low_;
        const double largest = std::max(sample.sorted.back(), 1e-300);
        if (top == kInfinity)
            top = step_ > 0 ? largest / step_ : largest * static_cast<double>(2 * n);
        if (bottom == 0.0)
            bottom = (first < size ? sample.sorted[first] : largest) / (1 + step_) * 0.5;
        if (!(bottom < top)) return;
        const double k = static_cast<double>(k_);
        const double root = sample.solve(k, bottom, top);
        const double spread = margin * sample.deviation(root);
        // However sure the sample is, leave some width.
        const double least = std::min(sample.solve(k + spread, bottom, root), root * (1 - 1e-9));
        const double most = std::max(sample.solve(k - spread, root, top), root * (1 + 1e-9));
        if (least > bottom && least > low_) low = least;
        if (most < top && most < high_) high = most;
    }

    // Newton's method on S(1/t) = k, linear between its break points: a step that lands where it
    // came from has found the piece and, in double-double, the root. Where break points spread over
    // many decades steps may be small: now and then the bracket is cut in two.
    DoubleDouble by_newton(double guess) const {
        const Index n = (n_open_ + kBlock - 1) / kBlock * kBlock;
        std::vector<double> open(as_size(n), 0.0);
        std::copy_n(open_.get(), n_open_, open.begin());
        double low = low_, high = high_;
        Settled before;
        bool stepped = false;
        DoubleDouble x{guess, 0.0};
        if (!(x.high > low && x.high < high) && high == kInfinity) {
            // As if every entry were in between.
            vectorized<settle_at>(open.data(), n, {}, {kInfinity, 0}, before);
            before = before + settled_;
            x = before.middle_sum / wanted(before);
        }
        if (!(x.high > low && x.high < high)) x = {between(low, high), 0.0};
        for (int round = 0; round < 400; ++round) {
            const DoubleDouble zero = x * step_, full = x + zero;
            Settled here;
            vectorized<settle_at>(open.data(), n, zero, full, here);
            here = here + settled_;
            const bool same = stepped && here.n_saturated == before.n_saturated &&
                              here.n_middle == before.n_middle &&
                              here.middle_sum.high == before.middle_sum.high &&
                              here.middle_sum.low == before.middle_sum.low;
            if (here.n_saturated == k_ && (here.n_middle == 0 || same)) {
                // S = k from x on, up to where the least saturated entry leaves d = 1.
                double least = kInfinity;
                for (const double a : open)
                    if (a >= full.high) least = std::min(least, a);
                return least == kInfinity ? x : DoubleDouble{least, 0} / two_sum(1.0, step_);
            }
            if (same) break;
            const DoubleDouble sum = wanted(here);
            (positive(here.middle_sum - sum * x) ? low : high) = x.high;
            before = here;
            stepped = here.n_middle > 0 && positive(sum) && round % 8 != 7;
            if (stepped) x = here.middle_sum / sum;
            stepped = stepped && x.high >= low && x.high <= high;
            if (!stepped) x = {between(low, high), 0.0};
        }
        return x;
    }

    // What the entries in between have to add up to, over x.
    DoubleDouble wanted(const Settled& at) const {
        return DoubleDouble{static_cast<double>(k_ - at.n_saturated), 0} +
               two_product(step_, static_cast<double>(at.n_middle));
    }

    double between(double low, double high) const {
        if (high == kInfinity) return low > 0 ? 4 * low : largest_ / (1 + step_);
        return low > 0 ? std::sqrt(low) * std::sqrt(high) : high / 4;
    }

    const Index k_;
    const double step_;
    Settled settled_;
    std::unique_ptr<double[]> open_, next_;
    Index n_open_ = 0;
    double low_ = 0.0;         // S(low) > k, or low = 0
    double high_ = kInfinity;  // S(high) < k
    double largest_ = 0.0;     // the largest magnitude seen
};

// What the multiplier's equation needs to know of d = clip(t |v| - mu, 0, 1).
struct Pattern {
    Index ones = -1;
    Index middle = -1;
    double square_of_ones = 0.0;
    double sum_of_middle = 0.0;

    bool same(const Pattern& other) const { return ones == other.ones && middle == other.middle; }
};

ATOMLEARN_INLINE void count_pattern(const double* v, Index n, const Scaled& at, Pattern& found) {
    Index ones = 0, middle = 0;
    double squares = 0.0, sum = 0.0;
    const double full = at.full.high, high = at.theta.high, low = at.theta.low;
#pragma omp simd reduction(+ : ones, middle, squares, sum)
    for (Index j = 0; j < n; ++j) {
        const double a = std::fabs(v[j]);
        const bool one = a >= full && a > 0.0, between = !one && (a - high) - low > 0.0;
        ones += one;
        middle += between;
        squares += one ? a * a : 0.0;
        sum += between ? a : 0.0;
    }
    found = {ones, middle, squares, sum};
}

// F(x)^2 = sum of (a / (x + b))^2.
struct Terms {
    double a[2] = {0.0, 0.0};
    double b[2] = {1.0, 1.0};

    Terms(const Pattern& at, Index k, bool penalized) {
        a[0] = std::sqrt(at.square_of_ones);
        // Rounding can leave a trace of d > 0 beside k entries that have used up the budget.
        if (at.middle == 0 || at.ones >= k) return;
        const double share = static_cast<double>(k - at.ones);
        const double root = std::sqrt(share), number = static_cast<double>(at.middle);
        a[1] = penalized ? at.sum_of_middle / root : at.sum_of_middle * root / number;
        b[1] = penalized ? number / share : share / number;
    }
    double value(double x) const { return std::hypot(a[0] / (x + b[0]), a[1] / (x + b[1])); }
    // Newton's method on 1 / F, concave: monotone from the left.
    double root(double amount, double x) const {
        for (int step = 0; step < 60; ++step) {
            const double now = value(x);
            if (now <= amount) break;
            double cubes = 0.0;
            for (int e = 0; e < 2; ++e)
                cubes += a[e] * a[e] / ((x + b[e]) * (x + b[e]) * (x + b[e]));
            const double following = x + (now - amount) * now * now / (amount * cubes);
            if (following <= x) break;
            x = following;
        }
        return x;
    }
};

// The largest magnitude; infinity where an entry is not finite.
template <class T>
double largest_in(const T* v, Index n) {
    const auto parts = by_pieces<double>(n, [&](Range range, int, double& largest) {
        largest = vectorized<largest_of<T>>(v + range.begin, range.size());
    });
    return *std::max_element(parts.begin(), parts.end());
}

// Entries over a power of two, which is exact.
template <class T>
std::vector<double> divided(const T* v, Index n, int exponent) {
    std::vector<double> result(as_size(n));
    for (Index e = 0; e < n; ++e) result[as_size(e)] = std::scalbn(double(v[e]), -exponent);
    return result;
}

}  // namespace

template <class T>
Scaled ksupport_root(const T* v, Index n, Index k, double step, double guess) {
    Equation equation(k, step);
    DoubleDouble x = equation.solve(v, n, guess);
    // Where squares or sums could overflow or vanish, entries are scaled first.
    const auto tame = [](double number) { return number > 1e-150 && number < 1e150; };
    if (x.high > 0.0 && !(tame(x.high) && (step == 0.0 || tame(step * x.high)) &&
                          tame((step + 1.0) * equation.largest()))) {
        const int exponent = std::ilogb(equation.largest());
        x = Equation(k, step).solve(divided(v, n, exponent).data(), n, 0.0);
        x = {std::scalbn(x.high, exponent), std::scalbn(x.low, exponent)};
    }
    const DoubleDouble theta = x * step;
    return {x, theta, x + theta};
}

template <class T>
bool shrink_and_threshold(const T* v, Index n, DoubleDouble theta, double shrink, T* w) {
    const auto finite = by_pieces<char>(n, [&](Range range, int, char& good) {
        good = vectorized<shrink_range<T>>(v + range.begin, range.size(), theta.high, theta.low,
                                           shrink, w + range.begin);
    });
    return std::find(finite.begin(), finite.end(), 0) == finite.end();
}

template <class T>
double ksupport_gauge(const T* w, Index n, Index k) {
    const double largest = largest_in(w, n);
    if (largest == 0.0 || !(largest <= kLargest)) return largest <= kLargest ? 0.0 : std::nan("");
    if (largest > 1e120 || largest < 1e-120) {
        const int exponent = std::ilogb(largest);
        return std::scalbn(ksupport_gauge(divided(w, n, exponent).data(), n, k), exponent);
    }
    const DoubleDouble x = ksupport_root(w, n, k, 0.0).x;
    // Saturated entries (a >= x) count with their squares, the others with their sum, x times
    // what the saturated ones leave of k.
    const auto parts = by_pieces<Above>(n, [&](Range range, int, Above& above) {
        vectorized<add_above<T>>(w + range.begin, range.size(), x.high, above);
    });
    DoubleDouble total;
    Index saturated = 0;
    for (const Above& one : parts) {
        total = total + one.squares.total();
        saturated += one.count;
    }
    if (x.high > 0) total = total + x * x * static_cast<double>(k - saturated);
    return std::sqrt(total.high);
}

// A step goes to the root of the present pattern's equation; now and then, and where that lies
// outside the bounds, to their middle.
double ksupport_multiplier(const double* v, Index n, Index k, double amount, bool penalized,
                           double x) {
    double low = 0.0, high = kInfinity, mu = 0.0, inverse = 0.0;
    Pattern known;
    for (int round = 0; round < 200; ++round) {
        mu = penalized ? 1.0 / x : x;
        const Scaled at = ksupport_root(v, n, k, mu, inverse);
        if (std::isnan(at.x.high)) return at.x.high;
        inverse = at.x.high;
        Pattern found;
        vectorized<count_pattern>(v, n, at, found);
        const Terms terms(found, k, penalized);
        const double value = terms.value(x);
        if (found.same(known) || value == amount) break;
        (value > amount ? low : high) = x;
        known = found;
        double next = terms.root(amount, low);
        if (!(low < next && next < high) || round % 8 == 7) {
            known = Pattern{};
            next =
                high == kInfinity ? 4 * x : (low > 0 ? std::sqrt(low) * std::sqrt(high) : high / 4);
        }
        if (!(low < next && next < high)) break;
        x = next;
    }
    return mu;
}

#define ATOMLEARN_INSTANTIATE(T)                                              \
    template Scaled ksupport_root<T>(const T*, Index, Index, double, double); \
    template double ksupport_gauge<T>(const T*, Index, Index);                \
    template bool shrink_and_threshold<T>(const T*, Index, DoubleDouble, double, T*);
ATOMLEARN_INSTANTIATE(float)
ATOMLEARN_INSTANTIATE(double)

namespace {

// w = argmin 1/2 ||w - v||^2 + step/2 gauge(w)^2; returns t, NaN where v is not finite.
double prox(const Vector& v, Index k, double step, const OutVector& w) {
    return by_float(v, [&]<class T>(const T* data) {
        const Index n = size_of(v);
        const Scaled root = k < n ? ksupport_root(data, n, k, step) : Scaled{};
        const bool finite = shrink_and_threshold(data, n, root.theta, 1.0 / (1.0 + step),
                                                 static_cast<T*>(w.data()));
        if (!finite) return std::nan("");
        return root.x.high > 0 ? 1.0 / root.x.high : kInfinity;
    });
}

double gauge(const Vector& w, Index k) {
    return by_float(w, [&](const auto* data) { return ksupport_gauge(data, size_of(w), k); });
}

double multiplier(const Doubles& v, Index k, double amount, bool penalized, double x) {
    return ksupport_multiplier(v.data(), size_of(v), k, amount, penalized, x);
}

}  // namespace

void bind_ksupport(nb::module_& m) {
    define(m, "prox", &prox);
    define(m, "gauge", &gauge);
    define(m, "multiplier", &multiplier);
}

}  // namespace atomlearn
