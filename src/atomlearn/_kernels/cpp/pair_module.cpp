// The part of the Python module that searches pairs of columns.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "bindings.hpp"
#include "pairs.hpp"

namespace atomlearn {
namespace {

using Integers = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Calls f with the columns of a CSC array of `n_rows` rows.
template <class F>
auto by_columns(const Vector& data, const Vector& indices, const Vector& indptr, Index n_rows,
                F&& f) {
    return by_float(data, [&](auto* values) {
        return by_index(indices, [&](auto* positions) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(positions)>>;
            return f(Compressed<T, I>{values, positions, static_cast<const I*>(indptr.data()),
                                      static_cast<Index>(indptr.shape(0)) - 1, n_rows, nullptr});
        });
    });
}

void extremes(const Vector& data, const Vector& indices, const Vector& indptr,
              const OutDoubles& low, const OutDoubles& high) {
    const nb::gil_scoped_release release;
    by_columns(data, indices, indptr, static_cast<Index>(low.shape(0)),
               [&](const auto& x) { row_extremes(x, low.data(), high.data()); });
}

void bounds(const Vector& data, const Vector& indices, const Vector& indptr,
            const std::optional<Positions>& columns, const DoubleMatrix& packed,
            const OutDoubles& upper, const OutDoubles& rising, const OutDoubles& falling) {
    const nb::gil_scoped_release release;
    by_columns(data, indices, indptr, static_cast<Index>(packed.shape(0)), [&](auto x) {
        if (columns) {
            x.major_subset = columns->data();
            x.count = static_cast<Index>(columns->shape(0));
        }
        pair_bounds(x, packed.data(), upper.data(), rising.data(), falling.data());
    });
}

template <class T>
PairRows<T> rows_in(const Bytes& entries, const OutPositions& begins, const Integers& sizes) {
    return {reinterpret_cast<PairEntry<T>*>(entries.data()), begins.data(), sizes.data()};
}

// Bytes of an entry of PairRows.
Index entry_size(bool single) {
    return static_cast<Index>(single ? sizeof(PairEntry<float>) : sizeof(PairEntry<double>));
}

void rows_of_columns(const Vector& data, const Vector& indices, const Vector& indptr,
                     const Integers& place, const Doubles& v, const Bytes& entries,
                     const OutPositions& begins, const Integers& sizes, const OutDoubles& costs) {
    const nb::gil_scoped_release release;
    // By rows: what is called a column there is a row here.
    by_columns(data, indices, indptr, static_cast<Index>(place.shape(0)), [&](const auto& x) {
        using T = std::remove_cvref_t<decltype(*x.data)>;
        pair_rows(x, place.data(), static_cast<Index>(costs.shape(0)), v.data(),
                  rows_in<T>(entries, begins, sizes), costs.data());
    });
}

Index sums_by_rows(const Vector& data, const Vector& indices, const Vector& indptr,
                   const Integers& place, const Doubles& v, const OutDoubleMatrix& sums) {
    const nb::gil_scoped_release release;
    return by_columns(
        data, indices, indptr, static_cast<Index>(place.shape(0)), [&](const auto& x) {
            return pair_sums_by_rows(x, place.data(), static_cast<Index>(sums.shape(0)), v.data(),
                                     sums.data());
        });
}

// limits: threshold, relative, absolute, square; counts: products, pairs, columns, added to.
std::pair<Index, Index> search(const Vector& data, const Vector& indices, const Vector& indptr,
                               const Positions& order, const Bytes& entries,
                               const OutPositions& begins, const Integers& sizes, const Doubles& v,
                               const Doubles& radii, const Doubles& upper, const Doubles& costs,
                               const Doubles& limits, Index shift, Index begin, Index end,
                               const OutDoubles& sums, const Integers& touched, const Bytes& seen,
                               const Integers& first, const Integers& second,
                               const OutDoubles& found_sums, const OutPositions& counts) {
    const nb::gil_scoped_release release;
    return by_columns(data, indices, indptr, static_cast<Index>(v.shape(0)), [&](const auto& x) {
        using T = std::remove_cvref_t<decltype(*x.data)>;
        const double* given = limits.data();
        const PairLimits bound{given[0], given[1], given[2], given[3], shift};
        const PairScratch scratch{sums.data(), touched.data(), seen.data()};
        PairFound found{first.data(), second.data(), found_sums.data(),
                        static_cast<Index>(found_sums.shape(0)), 0};
        PairCounts work;
        const Index next =
            pair_search(x, order.data(), static_cast<Index>(order.shape(0)),
                        rows_in<T>(entries, begins, sizes), v.data(), radii.data(), upper.data(),
                        costs.data(), bound, {begin, end}, scratch, found, work);
        counts.data()[0] += work.products;
        counts.data()[1] += work.pairs;
        counts.data()[2] += work.columns;
        return std::pair<Index, Index>{next, found.size};
    });
}

double peak_of_tile(const Matrix& tile) {
    const nb::gil_scoped_release release;
    return by_float(tile, [&](auto* values) {
        return tile_peak(values, static_cast<Index>(tile.shape(0)),
                         static_cast<Index>(tile.shape(1)), Index{tile.stride(0)});
    });
}

Index places_in_tile(const Matrix& tile, double least, const OutPositions& places) {
    const nb::gil_scoped_release release;
    return by_float(tile, [&](auto* values) {
        return tile_places(values, static_cast<Index>(tile.shape(0)),
                           static_cast<Index>(tile.shape(1)), Index{tile.stride(0)}, least,
                           places.data(), static_cast<Index>(places.shape(0)));
    });
}

}  // namespace

void bind_pairs(nb::module_& m) {
    const auto same = [] { return nb::arg().noconvert(); };
    m.def("row_extremes", &extremes, same(), same(), same(), same(), same());
    m.def("pair_bounds", &bounds, same(), same(), same(), nb::arg().none(), same(), same(), same(),
          same());
    m.def("pair_entry_size", &entry_size, nb::arg());
    m.def("pair_rows", &rows_of_columns, same(), same(), same(), same(), same(), same(), same(),
          same(), same());
    m.def("pair_sums_by_rows", &sums_by_rows, same(), same(), same(), same(), same(), same());
    m.def("pair_search", &search, same(), same(), same(), same(), same(), same(), same(), same(),
          same(), same(), same(), same(), nb::arg(), nb::arg(), nb::arg(), same(), same(), same(),
          same(), same(), same(), same());
    m.def("tile_peak", &peak_of_tile, same());
    m.def("tile_places", &places_in_tile, same(), nb::arg(), same());
}

}  // namespace atomlearn
