// Small non-negative quadratic programs.
#pragma once

#include <vector>

#include "platform.hpp"

namespace atomlearn {

// x = argmin over x >= 0 of 1/2 x'Hx - b'x, from a guess of what is positive. H is symmetric,
// stored whole, and overwritten. False where it is not positive definite.
bool nonnegative_minimum(std::vector<double>& hessian, std::vector<double>& right,
                         const std::vector<char>& positive, std::vector<double>& x);

}  // namespace atomlearn
