// A step goes to the root of the present pattern's equation, which converges from one side; where
// that lies outside the bounds, to where the chord of 1 / F (nearly a line) vanishes; and to the
// middle where six steps together have not halved the interval.
#include "ksupport_root.hpp"

#include <cmath>

namespace atomlearn {
namespace {

constexpr int kMostSteps = 200;
constexpr int kMostNewton = 60;
constexpr int kPatience = 6;

// What the equation needs to know of d = clip(t |v| - mu, 0, 1).
struct Pattern {
    Index ones = -1;
    Index middle = -1;
    double square_of_ones = 0.0;
    double sum_of_middle = 0.0;

    bool same(const Pattern& other) const { return ones == other.ones && middle == other.middle; }
};

void count(const double* v, Index n, double t, double mu, Pattern& found) {
    Index ones = 0, middle = 0;
    double squares = 0.0, sum = 0.0;
    for (Index j = 0; j < n; ++j) {
        const double a = std::fabs(v[j]);
        const double unclipped = t * a - mu;
        if (unclipped >= 1.0) {
            ++ones;
            squares += a * a;
        } else if (unclipped > 0.0) {
            ++middle;
            sum += a;
        }
    }
    found = {ones, middle, squares, sum};
}

// `w` is the prox at mu, and t its scale.
Pattern pattern_of(const double* v, const double* w, Index n, Index k, double mu, double t) {
    Pattern found;
    if (std::isinf(t)) {
        found = {0, 0, 0.0, 0.0};
        for (Index j = 0; j < n; ++j) {
            found.ones += v[j] != 0.0;
            found.square_of_ones += v[j] * v[j];
        }
        return found;
    }
    count(v, n, t, mu, found);
    if (found.ones >= k) {
        // Rounding can leave a trace of d > 0 beside k entries that have used up the budget.
        found.middle = 0;
        found.sum_of_middle = 0.0;
    }
    if (found.ones == 0 && found.middle == 0) {
        // mu is so large that t |v| - mu cancels: every entry that is left lies between.
        for (Index j = 0; j < n; ++j) {
            if (w[j] == 0.0) continue;
            ++found.middle;
            found.sum_of_middle += std::fabs(v[j]);
        }
    }
    return found;
}

// F(x)^2 = sum of (a / (x + b))^2.
struct Terms {
    double a[2] = {0.0, 0.0};
    double b[2] = {1.0, 1.0};
    int size = 1;

    Terms(const Pattern& at, Index k, bool penalized) {
        a[0] = std::sqrt(at.square_of_ones);
        if (at.middle == 0) return;
        const double share = static_cast<double>(std::max<Index>(k - at.ones, 0));
        const double root = std::sqrt(share), number = static_cast<double>(at.middle);
        a[1] = penalized ? at.sum_of_middle / root : at.sum_of_middle * root / number;
        b[1] = penalized ? number / share : share / number;
        size = 2;
    }
    double value(double x) const {
        double total = 0.0;
        for (int e = 0; e < size; ++e) total += a[e] / (x + b[e]) * (a[e] / (x + b[e]));
        return std::sqrt(total);
    }
    double least() const { return size == 2 ? std::min(b[0], b[1]) : b[0]; }
    // Newton's method on 1 / F, concave: monotone from the left.
    double root(double amount, double low) const {
        double x = low;
        for (int step = 0; step < kMostNewton; ++step) {
            const double now = value(x);
            if (now <= amount) break;
            double cubes = 0.0;
            for (int e = 0; e < size; ++e)
                cubes += a[e] * a[e] / ((x + b[e]) * (x + b[e]) * (x + b[e]));
            const double following = x + (now - amount) * now * now / (amount * cubes);
            if (following <= x) break;
            x = following;
        }
        return x;
    }
};

}  // namespace

Status ksupport_multiplier(const double* v, Index n, Index k, double amount, bool penalized,
                           double start, double low, double high, double* room, double* mu) {
    double left_x = 0.0, left_value = start, right_x = 0.0, right_value = 0.0;
    bool has_right = false;
    double x = high, width = kInfinity;
    Pattern known;
    int patience = kPatience;
    for (int step = 0; step < kMostSteps; ++step) {
        *mu = penalized ? 1.0 / x : x;
        double t = 0.0;
        const Status status = ksupport_prox(v, n, k, *mu, room, &t);
        if (status != Status::ok) return status;
        const Pattern pattern = pattern_of(v, room, n, k, *mu, t);
        const Terms terms(pattern, k, penalized);
        const double value = terms.value(x);
        if (pattern.same(known) || value == amount) break;
        if (value > amount) {
            low = left_x = x;
            left_value = value;
        } else {
            high = right_x = x;
            right_value = value;
            has_right = true;
        }
        if (high - low <= 2e-16 * (high + terms.least())) break;
        --patience;
        if (high - low <= 0.5 * width) {
            width = high - low;
            patience = kPatience;
        }
        const auto inside = [&](double at) { return low <= at && at <= high && at > 0.0; };
        double root = terms.root(amount, low);
        known = pattern;
        if (root == x || !inside(root)) {
            known = Pattern{};
            root = std::nan("");
            if (has_right && left_x != right_x) {
                const double slope = (1.0 / right_value - 1.0 / left_value) / (right_x - left_x);
                root = left_x + (1.0 / amount - 1.0 / left_value) / slope;
            }
        }
        if (patience == 0 || !inside(root)) {
            root = 0.5 * (low + high);
            known = Pattern{};
            width = high - low;
            patience = kPatience;
        }
        x = root;
    }
    return Status::ok;
}

}  // namespace atomlearn
