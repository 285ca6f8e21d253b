// Exact search of the largest sums_k v_k x_ki x_kj over pairs of columns, free of Python.
#pragma once

#include "kernels.hpp"

namespace atomlearn {

// Extremes of each row and zero: low <= 0 <= high, of x in CSC.
template <class T, class I>
void row_extremes(const Compressed<T, I>& x, double* low, double* high);

// For each column i: rising = sqrt(sum of v_k x_ki^2 over v_k > 0), falling the same over v_k < 0,
// and upper >= |sum_k v_k x_ki x_kj| for every j. `packed` holds v_k, v_k high_k, v_k low_k.
template <class T, class I>
void pair_bounds(const Compressed<T, I>& x, const double* packed, double* upper, double* rising,
                 double* falling);

// X by rows, cut to some columns under new numbers: increasing positions in each row. Entry and
// position lie side by side, because rows are visited in jumps.
template <class T>
struct PairEntry {
    std::int32_t position;
    T value;
};
template <class T>
struct PairRows {
    PairEntry<T>* entries;
    Index* begins;        // (n_rows,)
    std::int32_t* sizes;  // (n_rows,)
};

// Fills `rows` from x in CSR with the columns whose place[column] >= 0 is their position, without
// rows where v is 0, and costs[a] with the entries that the pairs (a, b), b <= a, read.
template <class T, class I>
void pair_rows(const Compressed<T, I>& x, const std::int32_t* place, Index count, const double* v,
               const PairRows<T>& rows, double* costs);

// sums (count x count, C order): sum_k v_k x_ki x_kj at (place[i], place[j]) for place[i] <=
// place[j], else zero; x by rows, columns with place < 0 are left out, the others' places increase
// along each row. Returns the number of multiplications.
template <class T, class I>
Index pair_sums_by_rows(const Compressed<T, I>& x, const std::int32_t* place, Index count,
                        const double* v, double* sums);

// A sum matters where its magnitude, `square` times that for b = a, reaches
// threshold - relative r_a r_b - absolute. Pairs (a, b) have b <= a - shift.
struct PairLimits {
    double threshold;
    double relative;
    double absolute;
    double square;
    Index shift;
};

// Of one entry a position, all zero before and after.
struct PairScratch {
    double* sums;
    std::int32_t* touched;
    std::uint8_t* seen;
};

struct PairFound {
    std::int32_t* first;
    std::int32_t* second;
    double* sums;
    Index capacity;  // `count` of the columns and what should be found at a time
    Index size;
};

struct PairCounts {
    Index products = 0;  // multiplications
    Index pairs = 0;     // sums that were formed
    Index columns = 0;   // columns whose pairs were looked at
};

// Searches the pairs of positions a in `range`; returns the first position that is not done,
// because `found` is nearly full. `radii` decrease, and |sum| <= r_a r_b, |sum| <= upper_a.
template <class T, class I>
Index pair_search(const Compressed<T, I>& x, const Index* order, Index count,
                  const PairRows<T>& rows, const double* v, const double* radii,
                  const double* upper, const double* costs, const PairLimits& limits, Range range,
                  const PairScratch& scratch, PairFound& found, PairCounts& counts);

}  // namespace atomlearn
