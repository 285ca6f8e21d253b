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
                         size_of(indptr) - 1, size_of(left, 1), left.data(), right.data(),
                         out.data());
    });
}

void times_rows(const Doubles& data, const Vector& indices, const Vector& indptr, const Rows& right,
                const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    by_index(indices, [&](auto* positions) {
        sparse_times_rows(data.data(), positions, static_cast<decltype(positions)>(indptr.data()),
                          size_of(indptr) - 1, size_of(right, 1), right.data(), out.data());
    });
}

// ``order`` is empty where samples come in the order of the positions.
void ridge(const Vector& indices, const Vector& indptr, const Vector& order, const Doubles& slope,
           const Doubles& curvature, const Rows& factor, double amount,
           const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    by_index(indices, [&]<class I>(const I* positions) {
        using Pointer = const I*;
        const FactorRidge<I> given{
            positions,
            static_cast<Pointer>(indptr.data()),
            order.shape(0) == 0 ? nullptr : static_cast<Pointer>(order.data()),
            size_of(indptr) - 1,
            size_of(factor, 1),
            slope.data(),
            curvature.data(),
            factor.data(),
            amount,
        };
        factor_ridge(given, out.data());
    });
}

}  // namespace

void bind_sampled(nb::module_& m) {
    define(m, "sampled_products", &products);
    define(m, "sparse_times_rows", &times_rows);
    define(m, "factor_ridge", &ridge);
}

}  // namespace atomlearn
