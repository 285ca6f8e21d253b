// The k-support prox and gauge through scaling: one monotone equation in one unknown.
#pragma once

#include "double_double.hpp"

namespace atomlearn {

// With a = |v| and x = 1/t, d_j(x) = clip(a_j/x - s, 0, 1), and sum d = k at the root x. All three
// are 0 where at most k entries are non-zero, and NaN where an entry is not finite.
struct Scaled {
    DoubleDouble x;
    DoubleDouble theta;  // s x: d = 0 for a <= theta
    DoubleDouble full;   // x + theta: d = 1 for a >= full
};

// `guess`: of x, 0 where there is none.
template <class T>
Scaled ksupport_root(const T* v, Index n, Index k, double step, double guess = 0.0);
template <class T>
double ksupport_gauge(const T* w, Index n, Index k);
// w = sign(v) clip(|v| - theta, 0, shrink |v|); false where v is not finite.
template <class T>
bool shrink_and_threshold(const T* v, Index n, DoubleDouble theta, double shrink, T* w);

// The mu at which the prox of (mu / 2) gauge^2 at v is that of `amount` gauge (penalized), or the
// projection onto gauge <= amount, where that is not v, nor 0. `x` > 0 guesses mu, or 1 / mu where
// penalized. NaN where an entry is not finite.
double ksupport_multiplier(const double* v, Index n, Index k, double amount, bool penalized,
                           double x);

}  // namespace atomlearn
