// The numbers that the methods of Newton share.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// The smallest decrease accepted, as a share of what the slope promises.
constexpr double kArmijo = 1e-4;
// Trials of a search along a line.
constexpr int kHalvings = 20;
// At least so many columns may enter at a time.
constexpr Index kEntering = 32;
// Steps in a row without progress: the last one.
constexpr Index kPatience = 10;
// A relative change that is none.
constexpr double kAtRest = 1e-13;

}  // namespace atomlearn
