// The k-support prox and gauge through scaling: one monotone equation in one unknown.
//
// With a = |v| and x = 1/t, d_j(x) = clip(a_j/x - s, 0, 1), and S(x) = sum d_j falls from the
// number of non-zeros to 0. The root of S(x) = k gives theta = s x and
//     prox(v) = sign(v) clip(a - theta, 0, a/(1 + s));      s = 0 gives the gauge.
// A sample brackets the root; one pass then settles every entry whose d is 0, 1 or strictly
// between on the whole bracket, and keeps the others; a few hundred are left after two or three
// rounds. Settling only uses comparisons that rounding cannot spoil, and the last step is done
// in double-double, so the root is exact to the last digits whatever the input.
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "double_double.hpp"
#include "kernels.hpp"
#include "sampling.hpp"

namespace atomlearn {
namespace {

constexpr double kSafe = 1e-15;     // wider than the rounding of one product
constexpr Index kFewEnough = 1024;  // sorting these costs less than another round
constexpr Index kTiny = 256;        // and these need no rounds at all
constexpr Index kOperations = 16;   // about what one entry costs

// Magnitudes that decide, for a bracket [low, high] of x, what an entry certainly is.
struct Cuts {
    double zero;        // a <= zero: d = 0
    double middle_low;  // middle_low <= a <= middle_high: 0 < d < 1
    double middle_high;
    double saturated;  // a >= saturated: d = 1
    Cuts(double low, double high, double step)
        : zero(step * low * (1 - kSafe)),
          middle_low(step > 0 ? step * high * (1 + kSafe) : 0.0),
          middle_high((1 + step) * low * (1 - kSafe)),
          saturated((1 + step) * high * (1 + kSafe)) {
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
    double largest = 0.0;
    bool finite = true;
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
    result.settled = {n_saturated, n_middle, middle_sum.total()};
    result.n_undecided = n_undecided;
    result.finite = not_finite == 0;
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
        const double a = std::fabs(static_cast<double>(v[e]));
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

// The root: x = 0 where at most k entries are non-zero (every d is 1 for t = infinity).
struct Root {
    Status status = Status::ok;
    DoubleDouble x;
};

class Equation {
  public:
    Equation(Index k, double step) : k_(k), step_(step) {}

    template <class T>
    Root solve(const T* v, Index n);
    double largest() const { return largest_; }

  private:
    // +1 where S(x) > k for certain, -1 where S(x) < k for certain, 0 where rounding might decide.
    int side(double x, const Settled& settled, const double* open, Index n) const {
        const DoubleDouble theta = two_product(step_, x);
        const DoubleDouble middle =
            (settled.middle_sum - theta * static_cast<double>(settled.n_middle)) /
            DoubleDouble{x, 0};
        const double open_part = vectorized<open_sum>(open, n, theta.high, theta.low, x);
        const double room = static_cast<double>(k_ - settled.n_saturated);
        const double excess = (middle.high - room) + open_part;
        const double scale = std::fabs(middle.high) + std::fabs(room) + open_part;
        const double error = 1e-15 * static_cast<double>(n + 16) * scale;
        return excess > error ? 1 : (excess < -error ? -1 : 0);
    }

    struct Sample;
    template <class T>
    bool bracket(const T* list, Index n, double& low, double& high) const;
    template <class T>
    Sorted split(const T* list, Index n, const Cuts& cuts, std::unique_ptr<double[]>& open) const;
    DoubleDouble finish(const double* open, Index n) const;
    std::optional<DoubleDouble> by_newton(const std::vector<double>& padded) const;
    DoubleDouble by_sorting(std::vector<double> open) const;
    // What the entries in between have to add up to, over x.
    DoubleDouble room(Index n_saturated, Index n_middle) const {
        return DoubleDouble{static_cast<double>(k_ - n_saturated), 0} +
               two_product(step_, static_cast<double>(n_middle));
    }

    const Index k_;
    const double step_;
    Settled settled_;
    double low_ = 0.0;         // S(low) > k, or low = 0
    double high_ = kInfinity;  // S(high) < k
    double margin_ = 3.0;
    double largest_ = 0.0;  // the largest magnitude seen
};

// S(x) as a sample of the open entries estimates it.
struct Equation::Sample {
    std::vector<double> sorted;
    std::vector<double> sums;  // of the first entries
    double weight;             // entries that one of the sample stands for
    const Equation& equation;

    Sample(std::vector<double> magnitudes, double weight_, const Equation& equation_)
        : sorted(std::move(magnitudes)),
          sums(sorted.size() + 1),
          weight(weight_),
          equation(equation_) {
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t e = 0; e < sorted.size(); ++e) sums[e + 1] = sums[e] + sorted[e];
    }
    Index rank(double level) const {
        return std::lower_bound(sorted.begin(), sorted.end(), level) - sorted.begin();
    }
    double estimate(double x) const {
        const double s = equation.step_;
        const Index first = rank(s * x), last = std::max(first, rank((1 + s) * x));
        const double middle =
            (sums[last] - sums[first]) / x - s * static_cast<double>(last - first);
        const double saturated = static_cast<double>(static_cast<Index>(sorted.size()) - last);
        const Settled& base = equation.settled_;
        return weight * (middle + saturated) + static_cast<double>(base.n_saturated) +
               (base.middle_sum.high / x - s * static_cast<double>(base.n_middle));
    }
    // Standard deviation of the estimate, no smaller than the strata of the sample leave it.
    double deviation(double x) const {
        double sum = 0.0, squares = 0.0;
        for (auto a = sorted.rbegin(); a != sorted.rend(); ++a) {
            const double d = std::min(*a / x - equation.step_, 1.0);
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

// Narrows [low_, high_] to a tentative [low, high] that probably holds the root.
template <class T>
bool Equation::bracket(const T* list, Index n, double& low, double& high) const {
    const Index size = std::min(n / 4, std::clamp<Index>(n / 128, 768, 16384));
    const Sample sample(sampled_magnitudes<double, T>(list, n, size),
                        static_cast<double>(n) / static_cast<double>(size), *this);
    const Index first = sample.rank(std::numeric_limits<double>::min());
    if (first == size && settled_.n_middle == 0) return false;
    // Ends for the search where the bracket has none yet: S = 0 above, all saturated below.
    double top = high_, bottom = low_;
    const double largest = std::max(sample.sorted.back(), 1e-300);
    if (top == kInfinity) top = step_ > 0 ? largest / step_ : largest * static_cast<double>(2 * n);
    if (bottom == 0.0) bottom = (first < size ? sample.sorted[first] : largest) / (1 + step_) * 0.5;
    if (!(bottom < top)) return false;
    const double k = static_cast<double>(k_);
    const double root = sample.solve(k, bottom, top);
    const double spread = margin_ * sample.deviation(root);
    // However sure the sample is, leave some width.
    low = std::min(sample.solve(k + spread, bottom, root), root * (1 - 1e-9));
    high = std::max(sample.solve(k - spread, root, top), root * (1 + 1e-9));
    if (low <= bottom || low <= low_) low = low_;
    if (high >= top || high >= high_) high = high_;
    return low < high;
}

template <class T>
Sorted Equation::split(const T* list, Index n, const Cuts& cuts,
                       std::unique_ptr<double[]>& open) const {
    const int threads = threads_for(kOperations * n);
    // One block of slack a thread: undecided entries are written before they are counted.
    open.reset(new double[static_cast<std::size_t>(n + kBlock * (threads + 1))]);
    std::vector<Sorted> parts(static_cast<std::size_t>(threads));
    in_parallel(threads, [&](int part) {
        const Range range = piece(n, part, threads, kBlock);
        vectorized<sort_out<T>>(list + range.begin, range.size(), cuts,
                                open.get() + range.begin + part * kBlock, parts[part]);
    });
    Sorted all;
    for (int part = 0; part < threads; ++part) {
        const double* from = open.get() + piece(n, part, threads, kBlock).begin + part * kBlock;
        std::copy(from, from + parts[part].n_undecided, open.get() + all.n_undecided);
        all.n_undecided += parts[part].n_undecided;
        all.settled = all.settled + parts[part].settled;
        all.largest = std::max(all.largest, parts[part].largest);
        all.finite = all.finite && parts[part].finite;
    }
    return all;
}

template <class T>
Root Equation::solve(const T* v, Index n) {
    std::unique_ptr<double[]> open, next;
    if (n <= kTiny) {
        double few[kTiny];
        Index positive_ones = 0;
        for (Index e = 0; e < n; ++e) {
            const double a = std::fabs(static_cast<double>(v[e]));
            if (!(a <= kLargest)) return {Status::not_finite, {}};
            largest_ = std::max(largest_, a);
            if (a > 0.0) few[positive_ones++] = a;
        }
        return {Status::ok, finish(few, positive_ones)};
    }
    Index n_open = n;
    bool copied = false;  // the open entries are in `open` (before: in v itself)
    for (int round = 0, slow = 0; round < 40 && slow < 3; ++round) {
        if (n_open <= kFewEnough && copied) break;
        double low = low_, high = high_;
        if (n_open > kFewEnough) {
            const bool narrowed =
                copied ? bracket(open.get(), n_open, low, high) : bracket(v, n_open, low, high);
            if (!narrowed) low = low_, high = high_;
        }
        const Cuts cuts(low, high, step_);
        const Sorted sorted =
            copied ? split(open.get(), n_open, cuts, next) : split(v, n_open, cuts, next);
        if (!sorted.finite) return {Status::not_finite, {}};
        largest_ = std::max(largest_, sorted.largest);
        const Settled settled = settled_ + sorted.settled;
        const int below = low > low_ ? side(low, settled, next.get(), sorted.n_undecided) : 1;
        const int above = high < high_ ? side(high, settled, next.get(), sorted.n_undecided) : -1;
        if (below > 0 && above < 0) {
            if (copied && 2 * sorted.n_undecided > n_open) ++slow;
            low_ = low, high_ = high;
            settled_ = settled;
            std::swap(open, next);
            n_open = sorted.n_undecided;
            copied = true;
        } else {  // the sample misled: keep what the pass has proved about the two ends
            if (below < 0) high_ = std::min(high_, low);
            if (above > 0) low_ = std::max(low_, high);
            margin_ *= 3.0;
            ++slow;
        }
    }
    if (!copied) {  // the sample never helped: let the exact step see everything
        const Sorted sorted = split(v, n, Cuts(low_, high_, step_), open);
        settled_ = sorted.settled;
        n_open = sorted.n_undecided;
    }
    return {Status::ok, finish(open.get(), n_open)};
}

DoubleDouble Equation::finish(const double* open, Index n) const {
    if (low_ == 0.0 && settled_.n_middle == 0 && settled_.n_saturated + n <= k_) return {};
    std::vector<double> rest(static_cast<std::size_t>((n + kBlock - 1) / kBlock * kBlock), 0.0);
    std::copy(open, open + n, rest.begin());
    if (const auto root = by_newton(rest)) return *root;
    rest.resize(static_cast<std::size_t>(n));
    return by_sorting(std::move(rest));
}

// Newton's method on S(1/t) = k, linear between its break points: a step that lands where it
// came from has found the piece and, in double-double, the root. Few steps are enough, except
// where break points spread over many decades.
std::optional<DoubleDouble> Equation::by_newton(const std::vector<double>& padded) const {
    constexpr int kSteps = 12;
    const Index n = static_cast<Index>(padded.size());
    double low = low_, high = high_;
    Settled before;
    bool stepped = false;
    DoubleDouble x;
    if (high < kInfinity) {
        x = {low > 0 ? std::sqrt(low) * std::sqrt(high) : 0.5 * high, 0};
    } else {  // as if every entry were in between
        vectorized<settle_at>(padded.data(), n, {}, {kInfinity, 0}, before);
        before = before + settled_;
        x = before.middle_sum / room(before.n_saturated, before.n_middle);
        if (!(x.high > low)) x = {low > 0 ? 2 * low : 1.0, 0};
    }
    for (int round = 0; round < kSteps; ++round) {
        const DoubleDouble zero = x * step_, full = x + zero;
        Settled here;
        vectorized<settle_at>(padded.data(), n, zero, full, here);
        here = here + settled_;
        const bool same = stepped && here.n_saturated == before.n_saturated &&
                          here.n_middle == before.n_middle &&
                          here.middle_sum.high == before.middle_sum.high &&
                          here.middle_sum.low == before.middle_sum.low;
        if (same) return x;
        if (here.n_middle == 0 && here.n_saturated == k_) {
            // S = k around x, up to where the least saturated entry leaves d = 1.
            double least = kInfinity;
            for (const double a : padded)
                if (a >= full.high) least = std::min(least, a);
            if (least == kInfinity) return std::nullopt;
            return DoubleDouble{least, 0} / two_sum(1.0, step_);
        }
        const DoubleDouble wanted = room(here.n_saturated, here.n_middle);
        const bool too_small = positive(here.middle_sum - wanted * x);
        (too_small ? low : high) = x.high;
        before = here;
        stepped = here.n_middle > 0 && positive(wanted);
        if (stepped) x = here.middle_sum / wanted;
        if (!stepped || !(x.high >= low && x.high <= high)) {
            stepped = false;
            x = {high == kInfinity ? 4 * low
                                   : (low > 0 ? std::sqrt(low) * std::sqrt(high) : high / 4),
                 0};
        }
    }
    return std::nullopt;
}

// Solves exactly with the open entries sorted: the root lies between two break points for each
// of the two ways in which d bends, found by two binary searches with double-double signs.
DoubleDouble Equation::by_sorting(std::vector<double> open) const {
    std::sort(open.begin(), open.end());
    const Index n = static_cast<Index>(open.size());
    std::vector<DoubleDouble> sums(static_cast<std::size_t>(n + 1));
    for (Index e = 0; e < n; ++e) sums[e + 1] = sums[e] + DoubleDouble{open[e], 0};
    const DoubleDouble full = two_sum(1.0, step_);  // 1 + s
    // The sign of S(x) - k for x = value / divisor, where open entries below `first` have d = 0
    // and from `last` on d = 1, is that of  sum_middle / x - (k - n_saturated + s n_middle).
    const auto needed = [&](Index first, Index last) {
        return room(settled_.n_saturated + n - last, settled_.n_middle + last - first);
    };
    const auto middle = [&](Index first, Index last) {
        return settled_.middle_sum + sums[last] - sums[first];
    };
    const auto excess = [&](double value, DoubleDouble divisor, Index first, Index last) {
        last = std::max(first, last);
        return middle(first, last) * divisor - needed(first, last) * value;
    };
    const auto search = [&](auto&& holds) {  // first e in [0, n) where it does not hold
        Index low = 0, high = n;
        while (low < high) {
            const Index e = low + (high - low) / 2;
            holds(e) ? low = e + 1 : high = e;
        }
        return low;
    };
    const auto rank = [&](auto&& less) {
        return std::partition_point(open.begin(), open.end(), less) - open.begin();
    };
    Index first = 0;
    if (step_ > 0) {
        first = search([&](Index e) {  // x = a_e / s: zero up to and with a_e
            const double value = open[e];
            const Index zero = rank([&](double a) { return a <= value; });
            const Index saturated =
                rank([&](double a) { return positive(full * value - two_product(step_, a)); });
            // Where S = k on an interval, its left end counts as excess: the root is the right end.
            return !positive(-excess(value, {step_, 0}, zero, saturated));
        });
    }
    const Index last = search([&](Index e) {  // x = a_e / (1 + s): saturated from a_e on
        const double value = open[e];
        const Index saturated = rank([&](double a) { return a < value; });
        const Index zero =
            step_ > 0
                ? rank([&](double a) { return !positive(full * a - two_product(step_, value)); })
                : 0;
        return positive(excess(value, full, zero, saturated));
    });
    const bool no_middle = settled_.n_middle == 0 && first >= last;
    if (no_middle) {  // S = k on an interval: its right end, where the next entry is saturated
        const double value = last < n ? open[last] : (1 + step_) * high_;
        return DoubleDouble{value, 0} / full;
    }
    const Index end = std::max(first, last);
    return middle(first, end) / needed(first, end);
}

// The root for entries of any scale: where squares or sums could overflow or vanish, entries are
// scaled by a power of two first, which is exact.
template <class T>
Root solve_scaled(const T* v, Index n, Index k, double step) {
    Equation equation(k, step);
    Root root = equation.solve(v, n);
    const double x = root.x.high, largest = equation.largest();
    const bool tame =
        x == 0.0 || (x > 1e-150 && x < 1e150 && step * x > 1e-150 && step * x < 1e150 &&
                     largest < 1e150 && (step + 1.0) * largest < 1e150);
    if (root.status != Status::ok || tame) return root;
    const int exponent = std::ilogb(vectorized<largest_of<T>>(v, n));
    std::vector<double> scaled(static_cast<std::size_t>(n));
    for (Index e = 0; e < n; ++e) scaled[e] = std::scalbn(double(v[e]), -exponent);
    root = Equation(k, step).solve(scaled.data(), n);
    root.x = {std::scalbn(root.x.high, exponent), std::scalbn(root.x.low, exponent)};
    return root;
}

}  // namespace

template <class T>
bool shrink_and_threshold(const T* v, Index n, double theta_high, double theta_low, double shrink,
                          T* w) {
    const int threads = threads_for(kOperations * n);
    std::vector<char> finite(static_cast<std::size_t>(threads));
    in_parallel(threads, [&](int part) {
        const Range range = piece(n, part, threads, kBlock);
        finite[part] = vectorized<shrink_range<T>>(v + range.begin, range.size(), theta_high,
                                                   theta_low, shrink, w + range.begin);
    });
    return std::find(finite.begin(), finite.end(), 0) == finite.end();
}

template <class T>
Status ksupport_prox(const T* v, Index n, Index k, double step, T* w, double* scale) {
    Root root;
    if (k < n) root = solve_scaled(v, n, k, step);
    if (root.status != Status::ok) return root.status;
    const DoubleDouble theta = root.x * step;
    *scale = root.x.high > 0 ? 1.0 / root.x.high : kInfinity;
    return shrink_and_threshold(v, n, theta.high, theta.low, 1.0 / (1.0 + step), w)
               ? Status::ok
               : Status::not_finite;
}

template <class T>
Status ksupport_gauge(const T* w, Index n, Index k, double* gauge) {
    const int threads = threads_for(kOperations * n);
    std::vector<double> largest_in(static_cast<std::size_t>(threads));
    in_parallel(threads, [&](int part) {
        const Range range = piece(n, part, threads, kBlock);
        largest_in[part] = vectorized<largest_of<T>>(w + range.begin, range.size());
    });
    const double largest = *std::max_element(largest_in.begin(), largest_in.end());
    if (largest > kLargest) return Status::not_finite;
    *gauge = 0.0;
    if (largest == 0.0) return Status::ok;
    if (largest > 1e120 || largest < 1e-120) {
        const int exponent = std::ilogb(largest);
        std::vector<double> scaled(static_cast<std::size_t>(n));
        for (Index e = 0; e < n; ++e) scaled[e] = std::scalbn(double(w[e]), -exponent);
        const Status status = ksupport_gauge(scaled.data(), n, k, gauge);
        *gauge = std::scalbn(*gauge, exponent);
        return status;
    }
    Root root;
    if (k < n) root = Equation(k, 0.0).solve(w, n);
    if (root.status != Status::ok) return root.status;
    // Saturated entries (a >= x) count with their squares, the others with their sum, x times
    // what the saturated ones leave of k.
    const double x = root.x.high;
    std::vector<Above> above(static_cast<std::size_t>(threads));
    in_parallel(threads, [&](int part) {
        const Range range = piece(n, part, threads, kBlock);
        vectorized<add_above<T>>(w + range.begin, range.size(), x, above[part]);
    });
    DoubleDouble total;
    Index saturated = 0;
    for (const Above& one : above) {
        total = total + one.squares.total();
        saturated += one.count;
    }
    if (x > 0) total = total + root.x * root.x * static_cast<double>(k - saturated);
    *gauge = std::sqrt(total.high);
    return Status::ok;
}

#define ATOMLEARN_INSTANTIATE(T)                                                   \
    template Status ksupport_prox<T>(const T*, Index, Index, double, T*, double*); \
    template Status ksupport_gauge<T>(const T*, Index, Index, double*);            \
    template bool shrink_and_threshold<T>(const T*, Index, double, double, double, T*);
ATOMLEARN_INSTANTIATE(float)
ATOMLEARN_INSTANTIATE(double)

}  // namespace atomlearn
