// The k-support prox and gauge through scaling: one monotone equation in one unknown.
//
// With a = |v| and x = 1/t, d_j(x) = clip(a_j/x - s, 0, 1), and S(x) = sum d_j falls from the
// number of non-zeros to 0. The root of S(x) = k gives theta = s x and
//     prox(v) = sign(v) clip(a - theta, 0, a/(1 + s));      s = 0 gives the gauge.
// Newton steps on the whole vector, safeguarded by a bracket, end where the pattern of the entries
// (0, 1 or strictly between) repeats; comparisons and the last step are in double-double, so the
// root is exact to the last digits whatever the input. Where steps take long, everything is sorted.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "double_double.hpp"
#include "kernels.hpp"

namespace atomlearn {
namespace {

constexpr Index kMany = 4096;      // entries of which a part is asked first, one in
constexpr Index kPart = 16;        // so many
constexpr Index kOperations = 16;   // about what one entry costs

// How many entries have d = 1, and how many d = a/x - s strictly between; those sum up to this.
struct Settled {
    Index n_saturated = 0;
    Index n_middle = 0;
    DoubleDouble middle_sum;
};

constexpr Index kBlock = LaneSum::kLanes;

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
    std::optional<DoubleDouble> by_newton(const std::vector<double>& padded) const;
    DoubleDouble by_sorting(std::vector<double> magnitudes) const;
    // What the entries in between have to add up to, over x.
    DoubleDouble room(Index n_saturated, Index n_middle) const {
        return DoubleDouble{static_cast<double>(k_ - n_saturated), 0} +
               two_product(step_, static_cast<double>(n_middle));
    }

    const Index k_;
    const double step_;
    double largest_ = 0.0;  // the largest magnitude
};

template <class T>
Root Equation::solve(const T* v, Index n) {
    std::vector<double> magnitudes;
    magnitudes.reserve(as_size(n + kBlock));
    for (Index e = 0; e < n; ++e) {
        const double a = std::fabs(static_cast<double>(v[e]));
        if (!(a <= kLargest)) return {Status::not_finite, {}};
        largest_ = std::max(largest_, a);
        if (a > 0.0) magnitudes.push_back(a);
    }
    const std::size_t open = magnitudes.size();
    if (static_cast<Index>(open) <= k_) return {};
    magnitudes.resize((open + kBlock - 1) / kBlock * kBlock, 0.0);
    if (const auto root = by_newton(magnitudes)) return {Status::ok, *root};
    magnitudes.resize(open);
    return {Status::ok, by_sorting(std::move(magnitudes))};
}

// Newton's method on S(1/t) = k, linear between its break points: a step that lands where it
// came from has found the piece and, in double-double, the root. Few steps are enough, except
// where break points spread over many decades.
std::optional<DoubleDouble> Equation::by_newton(const std::vector<double>& padded) const {
    constexpr int kSteps = 60;
    const Index n = static_cast<Index>(padded.size());
    double low = 0.0, high = kInfinity;
    Settled before;
    bool stepped = false;
    // As if every entry were in between.
    vectorized<settle_at>(padded.data(), n, {}, {kInfinity, 0}, before);
    DoubleDouble x = before.middle_sum / room(before.n_saturated, before.n_middle);
    if (n > kMany) {  // the root of a part of the entries is near
        std::vector<double> part;
        for (Index e = 0; e < n; e += kPart) part.push_back(padded[as_size(e)]);
        part.resize((part.size() + kBlock - 1) / kBlock * kBlock, 0.0);
        const auto near = Equation((k_ + kPart - 1) / kPart, step_).by_newton(part);
        if (near) x = *near;
    }
    if (!(x.high > 0.0)) x = {1.0, 0};
    for (int round = 0; round < kSteps; ++round) {
        const DoubleDouble zero = x * step_, full = x + zero;
        Settled here;
        vectorized<settle_at>(padded.data(), n, zero, full, here);
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

// Solves exactly with the entries sorted: the root lies between two break points for each
// of the two ways in which d bends, found by two binary searches with double-double signs.
DoubleDouble Equation::by_sorting(std::vector<double> open) const {
    std::sort(open.begin(), open.end());
    const Index n = static_cast<Index>(open.size());
    std::vector<DoubleDouble> sums(static_cast<std::size_t>(n + 1));
    for (Index e = 0; e < n; ++e) sums[e + 1] = sums[e] + DoubleDouble{open[e], 0};
    const DoubleDouble full = two_sum(1.0, step_);  // 1 + s
    // The sign of S(x) - k for x = value / divisor, where entries below `first` have d = 0 and
    // from `last` on d = 1, is that of  sum_middle / x - (k - n_saturated + s n_middle).
    const auto needed = [&](Index first, Index last) { return room(n - last, last - first); };
    const auto middle = [&](Index first, Index last) { return sums[last] - sums[first]; };
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
    if (first >= last) {  // S = k on an interval: its right end, where the next entry is saturated
        const double value = open[std::min(last, n - 1)];
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
