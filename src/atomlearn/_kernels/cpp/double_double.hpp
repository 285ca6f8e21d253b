// Numbers of twice the precision: the unevaluated sum of two doubles (Dekker 1971, Knuth 1969).
// Only exact where products are rounded as written: compile with -ffp-contract=off.
#pragma once

#include <cmath>

#include "platform.hpp"

namespace atomlearn {

struct DoubleDouble {
    double high = 0.0;
    double low = 0.0;
};

inline DoubleDouble two_sum(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

inline DoubleDouble quick_two_sum(double a, double b) {
    const double sum = a + b;
    return {sum, b - (sum - a)};
}

inline DoubleDouble two_product(double a, double b) {
    const double product = a * b;
    return {product, std::fma(a, b, -product)};
}

inline DoubleDouble operator-(DoubleDouble a) {
    return {-a.high, -a.low};
}

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble high = two_sum(a.high, b.high);
    const DoubleDouble low = two_sum(a.low, b.low);
    const DoubleDouble sum = quick_two_sum(high.high, high.low + low.high);
    return quick_two_sum(sum.high, sum.low + low.low);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) {
    return a + (-b);
}

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble product = two_product(a.high, b.high);
    return quick_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

inline DoubleDouble operator*(DoubleDouble a, double b) {
    return a * DoubleDouble{b, 0.0};
}

inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const double first = a.high / b.high;
    const DoubleDouble rest = a - b * first;
    const double second = rest.high / b.high;
    const double third = (rest - b * second).high / b.high;
    const DoubleDouble quotient = quick_two_sum(first, second);
    return quotient + DoubleDouble{third, 0.0};
}

inline bool positive(DoubleDouble a) {
    return a.high > 0.0 || (a.high == 0.0 && a.low > 0.0);
}

// Sums kept in lanes, so that the compiler can vectorise compensated addition.
struct LaneSum {
    static constexpr int kLanes = 16;
    double high[kLanes] = {};
    double low[kLanes] = {};
    DoubleDouble total() const {
        DoubleDouble sums[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) sums[lane] = two_sum(high[lane], low[lane]);
        for (int half = kLanes / 2; half > 0; half /= 2)
            for (int lane = 0; lane < half; ++lane) sums[lane] = sums[lane] + sums[lane + half];
        return sums[0];
    }
};

inline __attribute__((always_inline)) void add(LaneSum& sum, int lane, double value) {
    const double before = sum.high[lane];
    const double after = before + value;
    const double part = after - before;
    sum.low[lane] += (before - (after - part)) + (value - part);
    sum.high[lane] = after;
}

}  // namespace atomlearn
