// The Python side of sampled.cpp.
#include "bindings.hpp"
#include "kernels.hpp"

namespace atomlearn {
namespace {

using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void products(const Vector& indices, const Vector& indptr, const Rows& left, const Rows& right,
              const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_index(indices, [&](auto* positions) {
        sampled_products(positions, static_cast<decltype(positions)>(indptr.data()),
                         static_cast<Index>(indptr.shape(0)) - 1, static_cast<Index>(left.shape(1)),
                         left.data(), right.data(), out.data());
    });
}

void times_rows(const Doubles& data, const Vector& indices, const Vector& indptr, const Rows& right,
                const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    by_index(indices, [&](auto* positions) {
        sparse_times_rows(data.data(), positions, static_cast<decltype(positions)>(indptr.data()),
                          static_cast<Index>(indptr.shape(0)) - 1,
                          static_cast<Index>(right.shape(1)), right.data(), out.data());
    });
}

}  // namespace

void bind_sampled(nb::module_& m) {
    m.def("sampled_products", &products, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_times_rows", &times_rows, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace atomlearn
