// Columns of small integers: sums of v over the entries of each code, and what follows from them.
#pragma once

#include "platform.hpp"

namespace atomlearn {

// Codes of columns: compressed (rows `indices` between `indptr`), or, where both are null, dense
// columns of n_rows codes. Column j has codes below starts[j + 1] - starts[j].
template <class I>
struct Codes {
    const std::uint8_t* codes;
    const I* indices;
    const I* indptr;
    Index n_rows;
    const Index* starts;
    Index begin(Index j) const { return indptr ? static_cast<Index>(indptr[j]) : j * n_rows; }
    Index end(Index j) const { return indptr ? static_cast<Index>(indptr[j + 1]) : begin(j + 1); }
    Index levels(Index j) const { return starts[j + 1] - starts[j]; }
};

// Sums for many vectors at once have `width` vectors, 1 or a multiple of kCodeLanes: row i of V is
// v[i * width ...], and sum s of all of them is out[s * width ...].
constexpr Index kCodeLanes = 8;

// out[offsets[p] + c] = sum of v over the entries with code c of column columns[p].
template <class I>
void code_histograms(const Codes<I>& x, const Index* columns, const Index* offsets, Index count,
                     const double* v, Index width, double* out);
// Thermometer columns between neighboring levels: +sqrt(gap) for codes above one that is not
// below zero[j], -sqrt(gap) for codes up to one that is. Either all scores of column p, from
// out[offsets[p]] on, or (`norms`) their l2 norm, out[p].
template <class I>
void thermometer_scores(const Codes<I>& x, const double* values, const Index* zero,
                        const Index* columns, const Index* offsets, Index count, const double* v,
                        Index width, bool norms, double* out);
// Scores of columns that are known at each code: column c of coded column j is
// tables[begins[j] + code * size + c], size = (begins[j + 1] - begins[j]) / levels of j. Those of
// columns[p] from out[offsets[p]] on; `squared`: of the squares of the entries.
template <class I>
void table_scores(const Codes<I>& x, const double* tables, const Index* begins,
                  const Index* columns, const Index* offsets, Index count, const double* v,
                  Index width, bool squared, double* out);
// out[a * n_second + b] = sum of weights over the rows with codes a and b.
void joint_histogram(const std::uint8_t* first, const std::uint8_t* second, Index n_rows,
                     Index n_first, Index n_second, const double* weights, double* out);
// The same for count pairs (first[p], second[p]) of columns of n_rows codes below n_levels <= 16,
// each n_levels * n_levels sums from out[p * n_levels * n_levels] on.
void pair_histograms(const std::uint8_t* codes, Index n_rows, Index n_levels, const Index* first,
                     const Index* second, Index count, const double* weights, Index width,
                     double* out);

}  // namespace atomlearn
