// The levels that columns are rounded to, and the codes of their entries.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// Columns one after the other: entries begin[p] .. begin[p + 1] - 1 are those of column p, in the
// rows `rows`, or in all of n_rows rows where that is null. Entries that are not there are 0.
template <class T, class I>
struct Listed {
    const T* values;
    const I* rows;
    const Index* begin;
    Index n_columns;
    Index n_rows;
};

// How columns with more than n_bins + 1 distinct values are divided: at these shares, increasing
// from 0 to 1, of the weight of the values other than the origin, or (`uniform`) of their range.
struct Binning {
    const double* shares;
    Index n_bins;
    bool uniform;
};

// Writes the levels of column p from values[p * (n_bins + 1)] on, how many they are into counts[p],
// and the position of the origin among them into zero[p]. Rows count `weight` times. A column whose
// range is no finite number has a count of 0, and its ends as the first two values.
template <class T, class I>
void find_levels(const Listed<T, I>& x, const double* weight, const Binning& binning,
                 double* values, Index* counts, Index* zero);

// codes[e] = position of the level nearest to entry e, of two the lower one. Those of column p are
// levels[starts[p]] .. levels[starts[p + 1] - 1], at most 256.
template <class T>
void encode_columns(const T* values, const Index* begin, Index n_columns, const double* levels,
                    const Index* starts, std::uint8_t* codes);

}  // namespace atomlearn
