// The four published ways to the k-support prox, for comparison with ksupport.cpp. All sort first.
//
// With z = |v| sorted decreasingly, beta = 1/step and T(r, l) = z_{k-r} + ... + z_l (1-based), the
// prox thresholds by tau(r, l) = T / (l - k + (beta + 1)(r + 1)); entries before k - r are shrunk
// by beta/(beta + 1), entries after l vanish ([A] Algorithm 1).
#include <cmath>
#include <functional>
#include <vector>

#include "bindings.hpp"
#include "ksupport.hpp"

namespace atomlearn {
namespace {

struct Threshold {
    double theta;
    double scale;  // t = step / theta
};

class Decreasing {
  public:
    template <class T>
    Decreasing(const T* v, Index n, Index k, double step) : k_(k), n_(n), beta_(1.0 / step) {
        z_.resize(static_cast<std::size_t>(n));
        for (Index j = 0; j < n; ++j) z_[j] = std::fabs(static_cast<double>(v[j]));
        std::sort(z_.begin(), z_.end(), std::greater<double>());
        // T(r, l) = z_{k-r} + ... + z_k and z_{k+1} + ... + z_l: both sums grow outwards from k,
        // so that nothing is ever taken off, and no digits are lost however far scales differ.
        back_.resize(static_cast<std::size_t>(k));
        ahead_.resize(static_cast<std::size_t>(n - k + 1));
        double sum = 0.0;
        for (Index r = 0; r < k; ++r) back_[r] = sum += z(k - r);
        sum = 0.0;
        for (Index l = k; l <= n; ++l) ahead_[l - k] = l == k ? 0.0 : (sum += z(l));
    }
    // 1-based, with the borders of the paper.
    double z(Index i) const { return i < 1 ? kInfinity : (i > n_ ? -kInfinity : z_[i - 1]); }
    double tau(Index r, Index l) const { return total(r, l) / weight(r, l); }
    // Is r large enough for this l: the first half of condition (7). Its second half is that
    // r - 1 is not: as T(r, l) = T(r - 1, l) + z_{k-r}, that is one and the same comparison, and
    // asked only once it can not be answered twice differently, which rounding does at ties.
    bool is_enough(Index r, Index l) const {
        return z(k_ - r - 1) * weight(r, l) > (beta_ + 1) * total(r, l);
    }
    // Does entry l + 1 belong to the sum: condition (8), both of its halves likewise.
    bool goes_on(Index r, Index l) const { return z(l + 1) * weight(r, l) > total(r, l); }
    // Condition (8) for one r by binary search over l in {k, ..., d}.
    Index find_l(Index r) const {
        Index low = k_, high = n_;
        while (low < high) {
            const Index l = low + (high - low) / 2;
            goes_on(r, l) ? low = l + 1 : high = l;
        }
        return low;
    }
    // The last l with z_l > theta.
    Index count_above(double theta) const {
        return std::partition_point(z_.begin(), z_.end(), [&](double a) { return a > theta; }) -
               z_.begin();
    }
    Threshold result(double theta) const { return {theta, 1.0 / (beta_ * theta)}; }
    Index k() const { return k_; }
    Index n() const { return n_; }
    double beta() const { return beta_; }

  private:
    double total(Index r, Index l) const { return back_[r] + ahead_[l - k_]; }
    double weight(Index r, Index l) const {
        return static_cast<double>(l - k_) + (beta_ + 1) * static_cast<double>(r + 1);
    }
    Index k_, n_;
    double beta_;
    std::vector<double> z_, back_, ahead_;
};

// [A]: every r, and for each every l, until conditions (7) and (8) hold.
Threshold exhaustive(const Decreasing& v) {
    for (Index r = 0;; ++r) {
        Index l = v.k();
        while (v.goes_on(r, l)) ++l;
        if (v.is_enough(r, l)) return v.result(v.tau(r, l));
    }
}

// [Lai et al. 2014]: binary search over r, within it binary search over l.
Threshold binary_search(const Decreasing& v) {
    Index low = 0, high = v.k() - 1;
    while (low < high) {
        const Index r = low + (high - low) / 2;
        v.is_enough(r, v.find_l(r)) ? high = r : low = r + 1;
    }
    return v.result(v.tau(low, v.find_l(low)));
}

// [Eriksson et al. 2015], as [L] describes it: the active set by two binary searches, one after
// the other. At the break point where z_{k-r} is just shrunk, theta is known, so one look-up of l
// tells on which side of it the solution is; with r fixed, l follows.
Threshold two_step(const Decreasing& v) {
    Index low = 0, high = v.k() - 1;
    while (low < high) {
        const Index r = low + (high - low) / 2;
        // theta where entry k - r - 1 stops to be shrunk: more r is needed if tau is above it.
        const double theta = v.z(v.k() - r - 1) / (v.beta() + 1);
        const Index l = std::max(v.k(), v.count_above(theta));
        v.tau(r, l) >= theta ? low = r + 1 : high = r;
    }
    return v.result(v.tau(low, v.find_l(low)));
}

// [McDonald et al. 2014]: the 2d break points of sum_j clip(t z_j - step, 0, 1) = k are sorted, a
// binary search brackets the root by sums over all entries, and interpolation ends it.
template <class T>
Threshold box_norm(const T* v, Index n, Index k, double step) {
    std::vector<double> points;
    points.reserve(static_cast<std::size_t>(2 * n));
    for (Index j = 0; j < n; ++j) {
        const double a = std::fabs(static_cast<double>(v[j]));
        if (a == 0.0) continue;
        points.push_back(step / a);
        points.push_back((1 + step) / a);
    }
    std::sort(points.begin(), points.end());
    const auto sum = [&](double t) {
        double total = 0.0;
        for (Index j = 0; j < n; ++j) {
            const double d = t * std::fabs(static_cast<double>(v[j])) - step;
            total += d < 0.0 ? 0.0 : (d > 1.0 ? 1.0 : d);
        }
        return total;
    };
    Index low = 0, high = static_cast<Index>(points.size()) - 1;
    const double wanted = static_cast<double>(k);
    while (high - low > 1) {
        const Index middle = low + (high - low) / 2;
        (sum(points[middle]) <= wanted ? low : high) = middle;
    }
    const double below = sum(points[low]), above = sum(points[high]);
    const double t = above > below ? points[low] + (wanted - below) / (above - below) *
                                                       (points[high] - points[low])
                                   : points[low];
    return {step / t, t};
}

// As the prox of ksupport.cpp, with what `threshold` finds.
template <class Find>
double prox_by(const Vector& v, Index k, double step, const OutVector& w, Find&& threshold) {
    return by_float(v, [&]<class T>(const T* data) {
        const Index n = size_of(v);
        Index n_nonzero = 0;
        for (Index j = 0; j < n; ++j) {
            if (!(std::fabs(double(data[j])) <= kLargest)) return std::nan("");
            n_nonzero += data[j] != 0;
        }
        const Threshold found = n_nonzero > k ? threshold(data, n) : Threshold{0.0, kInfinity};
        shrink_and_threshold(data, n, {found.theta, 0.0}, 1.0 / (1.0 + step),
                             static_cast<T*>(w.data()));
        return found.scale;
    });
}

template <auto Search>
double prox_sorted(const Vector& v, Index k, double step, const OutVector& w) {
    return prox_by(v, k, step, w,
                   [&](const auto* data, Index n) { return Search(Decreasing(data, n, k, step)); });
}

double prox_box_norm(const Vector& v, Index k, double step, const OutVector& w) {
    return prox_by(v, k, step, w,
                   [&](const auto* data, Index n) { return box_norm(data, n, k, step); });
}

}  // namespace

void bind_alternatives(nb::module_& m) {
    define(m, "prox_exhaustive", &prox_sorted<exhaustive>);
    define(m, "prox_box_norm", &prox_box_norm);
    define(m, "prox_binary_search", &prox_sorted<binary_search>);
    define(m, "prox_two_step", &prox_sorted<two_step>);
}

}  // namespace atomlearn
