// Numbers as files hold them: bytes, half precision, and genotypes of two bits.
#pragma once

#include <cstring>

#include "platform.hpp"

namespace atomlearn {

// Columns of codes have at most so many levels: a code is a byte.
constexpr Index kMostLevels = 256;
// Genotypes of a byte.
constexpr Index kQuad = 4;
// Columns of genotypes worked on together, which share what is read of vectors.
constexpr Index kColumns = 4;
// The lower bit of each genotype in a word of 32.
constexpr std::uint64_t kLow = 0x5555555555555555ull;

// IEEE half precision, widened by integer operations that every processor has in vectors.
struct Half {
    std::uint16_t bits;
    ATOMLEARN_INLINE operator double() const {
        const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
        float value;
        std::memcpy(&value, &magnitude, sizeof value);
        // The exponent's bias is 127 for 15: exact, subnormal numbers included.
        value *= 0x1p112f;
        return bits & 0x8000u ? -value : value;
    }
};

// Columns of PLINK's code, four samples a byte, the first in the lowest bits: 00 is two copies of
// the counted allele, 10 one, 11 none, 01 missing. Missing entries count as the column's mean.
struct Genotypes {
    const std::uint8_t* data;
    Index stride;  // bytes of a column
    Index n_samples;
    Index count;  // columns
    const double* means;
};

}  // namespace atomlearn
