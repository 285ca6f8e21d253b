// Array types of the Python module, and calls by the type of their entries.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "kernels.hpp"

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

// Calls f with the vectors of a CSR or CSC array, all or those at the positions `subset`.
template <class F>
auto by_compressed(const Vector& data, const Vector& indices, const Vector& indptr, Index length,
                   const std::optional<Positions>& subset, F&& f) {
    return by_float(data, [&]<class T>(const T* values) {
        return by_index(indices, [&]<class I>(const I* positions) {
            const Index count = subset ? size_of(*subset) : size_of(indptr) - 1;
            return f(Compressed<T, I>{values, positions, static_cast<const I*>(indptr.data()),
                                      count, length, data_of(subset)});
        });
    });
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

// Adds a function to the module.
template <class Result, class... Args>
void define(nb::module_& m, const char* name, Result (*function)(Args...)) {
    m.def(name, function, Argument<std::remove_cvref_t<Args>>::taken()...);
}

// The searches for pairs, in pair_module.cpp.
void bind_pairs(nb::module_& m);
// Products at sampled positions, in sampled_module.cpp.
void bind_sampled(nb::module_& m);
// Products with several vectors at once, in many_module.cpp.
void bind_many(nb::module_& m);
// Block pivoting, in pivoting_module.cpp.
void bind_pivoting(nb::module_& m);
// Newton steps by quadratic programs, in newton_module.cpp.
void bind_newton(nb::module_& m);

}  // namespace atomlearn
