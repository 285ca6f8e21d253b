// A sample of magnitudes, one at a random place in each of `size` equal strata: no pattern of the
// data can hide from it, and it is the same on every call.
#pragma once

#include <cmath>
#include <vector>

#include "platform.hpp"

namespace atomlearn {

template <class S, class T>
std::vector<S> sampled_magnitudes(const T* z, Index n, Index size) {
    std::vector<S> sample(static_cast<std::size_t>(size));
    std::uint64_t state = 0x9E3779B97F4A7C15ull;
    const double width = static_cast<double>(n) / static_cast<double>(size);
    for (Index s = 0; s < size; ++s) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        const double inside = static_cast<double>(state >> 11) * 0x1p-53;
        const Index position = static_cast<Index>((static_cast<double>(s) + inside) * width);
        sample[s] = static_cast<S>(std::fabs(z[std::min(position, n - 1)]));
    }
    return sample;
}

}  // namespace atomlearn
