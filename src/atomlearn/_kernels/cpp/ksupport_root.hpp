// The multiplier of the penalized and the constrained k-support prox.
#pragma once

#include "kernels.hpp"

namespace atomlearn {

// The mu at which the prox of (mu / 2) gauge^2 at v is that of `amount` gauge (penalized), or the
// projection onto gauge <= amount: with F of core/norms/ksupport_point.py, the x = mu, or 1 / mu,
// where F(x) = amount, known to lie in [low, high]; `start` is F(0). `room` has n entries.
Status ksupport_multiplier(const double* v, Index n, Index k, double amount, bool penalized,
                           double start, double low, double high, double* room, double* mu);

}  // namespace atomlearn
