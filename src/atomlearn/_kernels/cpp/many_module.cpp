// The Python side of many.cpp.
#include "bindings.hpp"
#include "genotype_search.hpp"
#include "many.hpp"

namespace atomlearn {
namespace {

using Vectors = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
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

void many_dense(const Matrix& x, bool rows_contiguous, const Vectors& v,
                const std::optional<Positions>& used, const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    by_float(x, [&]<class T>(const T* data) {
        const int major = rows_contiguous ? 0 : 1;
        const Majors<T> majors{data, x.stride(major), used ? size_of(*used) : size_of(x, major),
                               size_of(x, 1 - major), data_of(used)};
        dense_many(majors, rows_contiguous, {v.data(), size_of(v, 1), size_of(out)}, out.data());
    });
}

void many_csc(const Vector& data, const Vector& indices, const Vector& indptr, const Vectors& v,
              const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    by_compressed(data, indices, indptr, size_of(v), std::nullopt, [&](const auto& x) {
        sparse_many(x, {v.data(), size_of(v, 1), size_of(out)}, out.data());
    });
}

using Digit = std::int8_t;
using DigitArray = nb::ndarray<const Digit, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object genotype_digits(const Vectors& v) {
    const auto n = size_of(v), width = size_of(v, 1);
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
    const auto n = size_of(v), width = size_of(v, 1);
    {
        const nb::gil_scoped_release release;
        found = genotype_search(
            {data.data(), (n + 3) / 4, n, size_of(means), means.data()}, {v.data(), width, count},
            {digits.data(), steps.data(), digit_registers(width)},
            {centers.data(), factors.data(), totals.data(), copies.data()}, bounds.data());
    }
    return given(std::move(found), width);
}

}  // namespace

void bind_many(nb::module_& m) {
    define(m, "genotype_digits", &genotype_digits);
    define(m, "genotype_found", &genotype_found);
    define(m, "many_dense", &many_dense);
    define(m, "many_csc", &many_csc);
}

}  // namespace atomlearn
