// Arrays as Python gives them, calls by the type of their entries, and the functions of the module.
// Types are checked by nanobind, shapes by ``expect``; vectors of float64 may be given as other
// numbers, which are converted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "platform.hpp"

namespace nb = nanobind;

namespace atomlearn {

using Matrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Vector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutDoubles = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutPositions = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using DoubleMatrix = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using OutDoubleMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutMatrix = nb::ndarray<nb::ndim<2>, nb::f_contig, nb::device::cpu>;
// Rows one after the other.
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Raises ValueError unless this holds.
inline void expect(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class T, class Array>
const T* data_as(const Array& array) {
    const void* data = array.data();
    expect(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0,
           "array is not aligned in memory; pass a copy (np.array(..., copy=True))");
    return static_cast<const T*>(data);
}

// Calls f with a typed pointer to the data of a float32 or float64 array.
template <class Array, class F>
auto by_float(const Array& array, F&& f) {
    if (array.dtype() == nb::dtype<float>()) return f(data_as<float>(array));
    if (array.dtype() == nb::dtype<double>()) return f(data_as<double>(array));
    throw nb::type_error("array must be float32 or float64; convert it with astype(np.float64)");
}

template <class Array, class F>
auto by_index(const Array& array, F&& f) {
    if (array.dtype() == nb::dtype<std::int32_t>()) return f(data_as<std::int32_t>(array));
    if (array.dtype() == nb::dtype<std::int64_t>()) return f(data_as<std::int64_t>(array));
    throw nb::type_error("indices must be int32 or int64");
}

// Entries of an array along an axis.
template <class Array>
Index size_of(const Array& array, std::size_t axis = 0) {
    return static_cast<Index>(array.shape(axis));
}

inline const Index* data_of(const std::optional<Positions>& positions) {
    return positions ? positions->data() : nullptr;
}

// Raises unless all positions lie in [0, limit).
inline void expect_within(const Positions& positions, Index limit) {
    for (Index p = 0; p < size_of(positions); ++p)
        expect(positions.data()[p] >= 0 && positions.data()[p] < limit,
               "positions must be of rows or columns that there are");
}

// Whether rows are contiguous; else columns are.
inline bool rows_contiguous(const Matrix& x) {
    const bool rows = x.stride(1) == 1 || x.shape(1) <= 1;
    const bool columns = x.stride(0) == 1 || x.shape(0) <= 1;
    expect(rows || columns,
           "X must have contiguous rows or contiguous columns; pass np.ascontiguousarray(X)");
    return rows && !(columns && x.shape(1) <= 1);
}

// A dense matrix seen as `count` contiguous vectors of `length` entries, `stride` apart: the rows
// of a C-ordered array, the columns of a Fortran-ordered one. Optionally some vectors by position.
template <class T>
struct Majors {
    const T* data;
    Index stride;
    Index count;
    Index length;
    const Index* major_subset;  // null: all; else `count` positions
    const T* at(Index major) const {
        return data + (major_subset ? major_subset[major] : major) * stride;
    }
};

template <class T>
Majors<T> majors_of(const T* data, const Matrix& x, const std::optional<Positions>& subset) {
    const int major = rows_contiguous(x) ? 0 : 1;
    if (subset) {
        expect(major == 0, "rows are picked where rows are contiguous");
        expect_within(*subset, size_of(x, major));
    }
    return {data, x.stride(major), subset ? size_of(*subset) : size_of(x, major),
            size_of(x, 1 - major), data_of(subset)};
}

// How Python gives an argument: vectors of float64 are made of other numbers where need be, other
// arrays are never converted, optional ones may be None.
template <class T>
struct Argument {
    static auto taken() { return nb::arg(); }
};
template <class... Properties>
struct Argument<nb::ndarray<Properties...>> {
    static auto taken() { return nb::arg().noconvert(); }
};
template <>
struct Argument<Doubles> {
    static auto taken() { return nb::arg(); }
};
template <class T>
struct Argument<std::optional<T>> {
    static auto taken() { return nb::arg().noconvert().none(); }
};

// Adds a function to the module, which runs without the lock of the interpreter.
template <class Result, class... Args>
void define(nb::module_& m, const char* name, Result (*function)(Args...)) {
    const auto unlocked = [function](Args... args) {
        const nb::gil_scoped_release release;
        return function(args...);
    };
    m.def(name, unlocked, Argument<std::remove_cvref_t<Args>>::taken()...);
}

// What each file adds to the module.
void bind_active_set(nb::module_& m);
void bind_alternatives(nb::module_& m);
void bind_blas(nb::module_& m);
void bind_codes(nb::module_& m);
void bind_dense(nb::module_& m);
void bind_descent(nb::module_& m);
void bind_elastic_net(nb::module_& m);
void bind_genotypes(nb::module_& m);
void bind_genotype_search(nb::module_& m);
void bind_group_newton(nb::module_& m);
void bind_ksupport(nb::module_& m);
void bind_pattern_newton(nb::module_& m);
void bind_levels(nb::module_& m);
void bind_many(nb::module_& m);
void bind_newton(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_pivoting(nb::module_& m);
void bind_sampled(nb::module_& m);

void bind_selection(nb::module_& m);
void bind_sparse(nb::module_& m);

}  // namespace atomlearn
