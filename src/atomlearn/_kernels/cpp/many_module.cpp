// The Python side of many.cpp.
#include "bindings.hpp"
#include "genotype_search.hpp"
#include "many.hpp"

#include <nanobind/stl/optional.h>
#include <optional>

namespace atomlearn {
namespace {

using Vectors = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OptionalDoubles = std::optional<Doubles>;

const Index* data_of(const std::optional<Positions>& positions) {
    return positions ? positions->data() : nullptr;
}

// Stored, unless a scale says which columns are looked for.
Wanted wanted_of(const OutDoubleMatrix& out, const OptionalDoubles& scale, Index n_columns) {
    return {scale ? nullptr : out.data(), n_columns, scale ? scale->data() : nullptr};
}

template <class T>
nb::ndarray<nb::numpy, T> owned(std::vector<T>&& numbers, std::size_t rows, std::size_t width) {
    auto* kept = new std::vector<T>(std::move(numbers));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    if (width == 0) return nb::ndarray<nb::numpy, T>(kept->data(), {rows}, owner);
    return nb::ndarray<nb::numpy, T>(kept->data(), {rows, width}, owner);
}

nb::object given(Found&& found, Index width) {
    const std::size_t count = found.columns.size();
    return nb::make_tuple(
        owned<Index>(std::move(found.columns), count, 0),
        owned<double>(std::move(found.values), count, static_cast<std::size_t>(width)));
}

nb::object many_dense(const Matrix& x, bool rows_contiguous, const Vectors& v, Index count,
                      const std::optional<Positions>& majors_used, const OptionalDoubles& scale,
                      const OutDoubleMatrix& out) {
    Found found;
    const Several several{v.data(), static_cast<Index>(v.shape(1)), count};
    {
        const nb::gil_scoped_release release;
        by_float(x, [&](auto* data) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
            const int major = rows_contiguous ? 0 : 1;
            const Index count =
                static_cast<Index>(majors_used ? majors_used->shape(0) : x.shape(major));
            const Majors<T> majors{
                data,   x.stride(major), count, Index(x.shape(1 - major)), data_of(majors_used),
                nullptr};
            const Index n_columns = rows_contiguous ? majors.length : majors.count;
            found = dense_many(majors, rows_contiguous, several, wanted_of(out, scale, n_columns));
        });
    }
    return given(std::move(found), several.width);
}

nb::object many_sparse(const Vector& data, const Vector& indices, const Vector& indptr,
                       bool by_columns, Index n_columns, const Vectors& v, Index count,
                       const std::optional<Positions>& columns, const OptionalDoubles& scale,
                       const OutDoubleMatrix& out) {
    Found found;
    const Several several{v.data(), static_cast<Index>(v.shape(1)), count};
    {
        const nb::gil_scoped_release release;
        by_float(data, [&](auto* values) {
            by_index(indices, [&](auto* positions) {
                using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
                using I = std::remove_const_t<std::remove_pointer_t<decltype(positions)>>;
                const Index majors =
                    static_cast<Index>(columns ? columns->shape(0) : indptr.shape(0) - 1);
                const Compressed<T, I> x{values, positions, static_cast<const I*>(indptr.data()),
                                         majors, n_columns, data_of(columns)};
                found = sparse_many(x, by_columns, several, wanted_of(out, scale, n_columns));
            });
        });
    }
    return given(std::move(found), several.width);
}

using Digit = std::int8_t;
using DigitArray = nb::ndarray<const Digit, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object genotype_digits(const Vectors& v) {
    const auto n = static_cast<Index>(v.shape(0)), width = static_cast<Index>(v.shape(1));
    std::vector<Digit> digits(as_size(digit_bytes(n, width)));
    std::vector<double> steps(as_size(width));
    {
        const nb::gil_scoped_release release;
        make_digits({v.data(), width, width}, n, steps.data(), digits.data());
    }
    const std::size_t size = digits.size();
    return nb::make_tuple(owned<Digit>(std::move(digits), size, 0),
                          owned<double>(std::move(steps), as_size(width), 0));
}

nb::object genotype_found(const Bytes& data, const Doubles& means, const Vectors& v, Index count,
                          const DigitArray& digits, const Doubles& steps, const Doubles& centers,
                          const Doubles& factors, const Doubles& copies, const Doubles& totals,
                          const Doubles& bounds) {
    Found found;
    const auto n = static_cast<Index>(v.shape(0)), width = static_cast<Index>(v.shape(1));
    {
        const nb::gil_scoped_release release;
        found = genotype_search(
            {data.data(), (n + 3) / 4, n, static_cast<Index>(means.shape(0)), means.data()},
            {v.data(), width, count}, {digits.data(), steps.data(), digit_registers(width)},
            {centers.data(), factors.data(), totals.data(), copies.data()}, bounds.data());
    }
    return given(std::move(found), width);
}

}  // namespace

void bind_many(nb::module_& m) {
    m.def("genotype_digits", &genotype_digits, nb::arg().noconvert());
    m.def("genotype_found", &genotype_found, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert());
    m.def("many_dense", &many_dense, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(),
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().noconvert());
    m.def("many_sparse", &many_sparse, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(),
          nb::arg().none(), nb::arg().none(), nb::arg().noconvert());
}

}  // namespace atomlearn
