// Array types of the Python module, and calls by the type of their entries.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
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
