// The part of the Python module that searches pairs of columns.
#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "pairs.hpp"

namespace atomlearn {
namespace {

using Integers = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void extremes(const Vector& data, const Vector& indices, const Vector& indptr,
              const OutDoubles& low, const OutDoubles& high) {
    const nb::gil_scoped_release release;
    by_compressed(data, indices, indptr, size_of(low), std::nullopt,
                  [&](const auto& x) { row_extremes(x, low.data(), high.data()); });
}

void bounds(const Vector& data, const Vector& indices, const Vector& indptr,
            const std::optional<Positions>& columns, const DoubleMatrix& packed,
            const OutDoubles& upper, const OutDoubles& rising, const OutDoubles& falling) {
    const nb::gil_scoped_release release;
    by_compressed(data, indices, indptr, size_of(packed), columns, [&](const auto& x) {
        pair_bounds(x, packed.data(), upper.data(), rising.data(), falling.data());
    });
}

template <class T>
PairRows<T> rows_in(const OutBytes& entries, const OutPositions& begins, const Integers& sizes) {
    return {reinterpret_cast<PairEntry<T>*>(entries.data()), begins.data(), sizes.data()};
}

// Bytes of an entry of PairRows.
Index entry_size(bool single) {
    return static_cast<Index>(single ? sizeof(PairEntry<float>) : sizeof(PairEntry<double>));
}

void rows_of_columns(const Vector& data, const Vector& indices, const Vector& indptr,
                     const Integers& place, const Doubles& v, const OutBytes& entries,
                     const OutPositions& begins, const Integers& sizes, const OutDoubles& costs) {
    const nb::gil_scoped_release release;
    // By rows: what is called a column there is a row here.
    by_compressed(data, indices, indptr, size_of(place), std::nullopt, [&](const auto& x) {
        using T = std::remove_cvref_t<decltype(*x.data)>;
        pair_rows(x, place.data(), size_of(costs), v.data(), rows_in<T>(entries, begins, sizes),
                  costs.data());
    });
}

Index sums_by_rows(const Vector& data, const Vector& indices, const Vector& indptr,
                   const Integers& place, const Doubles& v, const OutDoubleMatrix& sums) {
    const nb::gil_scoped_release release;
    return by_compressed(data, indices, indptr, size_of(place), std::nullopt, [&](const auto& x) {
        return pair_sums_by_rows(x, place.data(), size_of(sums), v.data(), sums.data());
    });
}

// limits: threshold, relative, absolute, square; counts: products, pairs, columns, added to.
std::pair<Index, Index> search(const Vector& data, const Vector& indices, const Vector& indptr,
                               const Positions& order, const OutBytes& entries,
                               const OutPositions& begins, const Integers& sizes, const Doubles& v,
                               const Doubles& radii, const Doubles& upper, const Doubles& costs,
                               const Doubles& limits, Index shift, Index begin, Index end,
                               const OutDoubles& sums, const Integers& touched,
                               const OutBytes& seen, const Integers& first, const Integers& second,
                               const OutDoubles& found_sums, const OutPositions& counts) {
    const nb::gil_scoped_release release;
    return by_compressed(data, indices, indptr, size_of(v), std::nullopt, [&](const auto& x) {
        using T = std::remove_cvref_t<decltype(*x.data)>;
        const double* given = limits.data();
        const PairLimits bound{given[0], given[1], given[2], given[3], shift};
        const PairScratch scratch{sums.data(), touched.data(), seen.data()};
        PairFound found{first.data(), second.data(), found_sums.data(), size_of(found_sums), 0};
        PairCounts work;
        const Index next = pair_search(
            x, order.data(), size_of(order), rows_in<T>(entries, begins, sizes), v.data(),
            radii.data(), upper.data(), costs.data(), bound, {begin, end}, scratch, found, work);
        counts.data()[0] += work.products;
        counts.data()[1] += work.pairs;
        counts.data()[2] += work.columns;
        return std::pair<Index, Index>{next, found.size};
    });
}

}  // namespace

void bind_pairs(nb::module_& m) {
    define(m, "row_extremes", &extremes);
    define(m, "pair_bounds", &bounds);
    define(m, "pair_entry_size", &entry_size);
    define(m, "pair_rows", &rows_of_columns);
    define(m, "pair_sums_by_rows", &sums_by_rows);
    define(m, "pair_search", &search);
}

}  // namespace atomlearn
