// A threshold that rises: over the entries above it its equation has a solution in closed form,
// which is never beyond the root; entries up to it drop out, until none does.
#include "elastic_net.hpp"

#include <algorithm>
#include <cmath>

#include "bindings.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

using Numbers = std::vector<double>;

double length_of(const Numbers& v) {
    return std::sqrt(dot(v.data(), v.data(), static_cast<Index>(v.size())));
}

double l1_of(const Numbers& v) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (std::size_t j = 0; j < v.size(); ++j) total += std::fabs(v[j]);
    return total;
}

void soft_threshold(Numbers& v, double theta) {
    for (double& x : v) x = std::copysign(std::max(std::fabs(x) - theta, 0.0), x);
}

// `level`: of a number of entries, their mean and their variance; 0 where only `few` are left.
template <class Level>
double rising_level(Numbers a, double few, Level level) {
    double theta = 0.0;
    for (double& x : a) x = std::fabs(x);
    while (static_cast<double>(a.size()) > few) {
        const double count = static_cast<double>(a.size()), mean = l1_of(a) / count;
        double squares = 0.0, largest = 0.0;
#pragma omp simd reduction(+ : squares) reduction(max : largest)
        for (std::size_t j = 0; j < a.size(); ++j) {
            squares += (a[j] - mean) * (a[j] - mean);
            largest = std::max(largest, a[j]);
        }
        theta = std::clamp(level(count, mean, squares / count), theta, largest);
        if (std::erase_if(a, [theta](double x) { return x <= theta; }) == 0) break;
    }
    return theta;
}

// The least theta >= 0 with ||S(v, theta)||_1 <= sqrt k ||S(v, theta)||_2, S the soft threshold.
double balance_level(const Numbers& v, double k) {
    if (l1_of(v) <= std::sqrt(k) * length_of(v)) return 0.0;
    return rising_level(v, k, [k](double count, double mean, double variance) {
        return mean - std::sqrt(variance * k / (count - k));
    });
}

}  // namespace

double elastic_gauge(const Numbers& w, double k) {
    return std::max(length_of(w), l1_of(w) / std::sqrt(k));
}

ElasticPoint elastic_point(Numbers& v, double k, double amount, bool squared) {
    const double root = std::sqrt(k), theta = balance_level(v, k);
    Numbers shrunk(v);
    soft_threshold(shrunk, theta);
    const double length = length_of(shrunk), l1_part = root * theta;
    // Where the l1 norm alone is the larger one, a part of theta is all that is taken off.
    if (theta > 0.0 && amount * (squared ? length : 1.0) <= l1_part) {
        const auto less = [&](double count, double mean, double) {
            return amount * count * mean / (k + amount * count);
        };
        soft_threshold(v, squared ? rising_level(v, 0.0, less) : amount / root);
        return {l1_of(v) / root, 1.0};
    }
    const double polar = length + l1_part;
    const double gauge = squared ? polar / (1.0 + amount) : std::max(polar - amount, 0.0);
    for (double& x : shrunk) x *= gauge > 0.0 ? gauge / length : 0.0;
    v = std::move(shrunk);
    return {gauge, l1_part / (squared ? amount * gauge : amount)};
}

void bind_elastic_net(nb::module_& m) {
    m.def("balance_level", [](const Doubles& v, double k) {
        return balance_level(Numbers(v.data(), v.data() + size_of(v)), k);
    });
}

}  // namespace atomlearn
