// Columns of genotypes whose products with some of many vectors are large.
#pragma once

#include <vector>

#include "many.hpp"
#include "stored.hpp"

namespace atomlearn {

// Vectors as two digits a byte each: registers of sixteen vectors and four samples, those of the
// high digits and those of the low ones in turn; v_ik = steps[k] (256 high + low) within half of
// steps[k].
struct Digits {
    const std::int8_t* data;
    const double* steps;
    Index registers;
};

// z_jk = (sum_i v_ik x_ij - centers[j] totals[k]) factors[j]; copies[j] = sum_i x_ij where known.
struct Shifted {
    const double* centers;
    const double* factors;
    const double* totals;
    const double* copies;
};

// The columns found, in order, and `width` values of each.
struct Found {
    std::vector<Index> columns;
    std::vector<double> values;
};

Index digit_registers(Index width);
Index digit_bytes(Index n_samples, Index width);
void make_digits(const Several& v, Index n_samples, double* steps, std::int8_t* out);
// The columns with |z_jk| >= bounds[k] for some k, and all their z; one thread a call.
Found genotype_search(const Genotypes& x, const Several& v, const Digits& digits,
                      const Shifted& shifted, const double* bounds);

}  // namespace atomlearn
