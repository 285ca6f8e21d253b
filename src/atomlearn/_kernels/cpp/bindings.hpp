// Arrays as Python gives them, calls by the type of their entries, and the functions of the module.
// Shapes and types are checked in Python, before.
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

// Calls f with a typed pointer to the data of a float32 or float64 array.
template <class Array, class F>
auto by_float(const Array& array, F&& f) {
    if (array.dtype() == nb::dtype<float>()) return f(static_cast<const float*>(array.data()));
    if (array.dtype() == nb::dtype<double>()) return f(static_cast<const double*>(array.data()));
    throw std::invalid_argument("expected float32 or float64");
}

template <class Array, class F>
auto by_index(const Array& array, F&& f) {
    if (array.dtype() == nb::dtype<std::int32_t>())
        return f(static_cast<const std::int32_t*>(array.data()));
    if (array.dtype() == nb::dtype<std::int64_t>())
        return f(static_cast<const std::int64_t*>(array.data()));
    throw std::invalid_argument("expected int32 or int64 indices");
}

// Entries of an array along an axis.
template <class Array>
Index size_of(const Array& array, std::size_t axis = 0) {
    return static_cast<Index>(array.shape(axis));
}

inline const Index* data_of(const std::optional<Positions>& positions) {
    return positions ? positions->data() : nullptr;
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
Majors<T> majors_of(const T* data, const Matrix& x, bool rows_contiguous,
                    const std::optional<Positions>& subset) {
    const int major = rows_contiguous ? 0 : 1;
    return {data, x.stride(major), subset ? size_of(*subset) : size_of(x, major),
            size_of(x, 1 - major), data_of(subset)};
}

// How Python gives an argument: arrays are never converted, optional ones may be None.
template <class T>
struct Argument {
    static auto taken() { return nb::arg(); }
};
template <class... Properties>
struct Argument<nb::ndarray<Properties...>> {
    static auto taken() { return nb::arg().noconvert(); }
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
void bind_genotypes(nb::module_& m);
void bind_genotype_search(nb::module_& m);
void bind_group_newton(nb::module_& m);
void bind_ksupport(nb::module_& m);
void bind_ksupport_newton(nb::module_& m);
void bind_levels(nb::module_& m);
void bind_many(nb::module_& m);
void bind_newton(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_pivoting(nb::module_& m);
void bind_sampled(nb::module_& m);

void bind_selection(nb::module_& m);
void bind_sparse(nb::module_& m);

}  // namespace atomlearn
