// The Python module: types are looked at here, and the lock is released for every kernel.
#include <nanobind/stl/pair.h>

#include <nanobind/stl/optional.h>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "active_set.hpp"
#include "bindings.hpp"
#include "blas.hpp"
#include "codes.hpp"
#include "group_newton.hpp"
#include "kernels.hpp"
#include "ksupport_root.hpp"
#include "levels.hpp"
#include "stored.hpp"

namespace atomlearn {
namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The same for everything that files hold dense: int8 and half precision, too.
template <class Array, class F>
auto by_stored(const Array& array, F&& f) {
    if (array.dtype() == nb::dtype<std::int8_t>())
        return f(static_cast<const std::int8_t*>(array.data()));
    const nb::dlpack::dtype half{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    if (array.dtype() == half) return f(static_cast<const Half*>(array.data()));
    return by_float(array, f);
}

const Index* optional_data(const std::optional<Positions>& positions) {
    return positions ? positions->data() : nullptr;
}

// `dots`: the result runs over the contiguous vectors; else it runs along them.
void dense_product(const Matrix& x, bool rows_contiguous, bool dots, bool squared, const Doubles& v,
                   const std::optional<Positions>& rows, const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_stored(x, [&](auto* data) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        const Index n_rows = static_cast<Index>(rows ? rows->shape(0) : x.shape(0));
        const Index n_columns = static_cast<Index>(x.shape(1));
        const Index* subset = optional_data(rows);
        const Majors<T> majors =
            rows_contiguous ? Majors<T>{data, x.stride(0), n_rows, n_columns, subset, nullptr}
                            : Majors<T>{data, x.stride(1), n_columns, n_rows, nullptr, subset};
        dots ? dense_dots(majors, v.data(), out.data(), squared)
             : dense_sums(majors, v.data(), out.data(), squared);
    });
}

void gather(const Matrix& x, bool rows_contiguous, const Positions& columns,
            const std::optional<Positions>& rows, const OutMatrix& out) {
    const nb::gil_scoped_release release;
    by_stored(x, [&](auto* data) {
        by_float(out, [&](auto* target) {
            using U = std::remove_const_t<std::remove_pointer_t<decltype(target)>>;
            dense_gather(data, rows_contiguous ? Index{x.stride(0)} : 1,
                         rows_contiguous ? 1 : Index{x.stride(1)}, optional_data(rows),
                         static_cast<Index>(out.shape(0)), columns.data(),
                         static_cast<Index>(columns.shape(0)), static_cast<U*>(out.data()));
        });
    });
}

Genotypes genotypes(const Bytes& data, Index n_samples, const Doubles& means) {
    const Index stride = (n_samples + 3) / 4;
    return {data.data(), stride, n_samples, static_cast<Index>(means.shape(0)), means.data()};
}

void dots_of_genotypes(const Bytes& data, Index n_samples, const Doubles& means, bool squared,
                       const Doubles& v, const OutDoubles& out) {
    const nb::gil_scoped_release release;
    genotype_dots(genotypes(data, n_samples, means), v.data(), out.data(), squared);
}

void sums_of_genotypes(const Bytes& data, Index n_samples, const Doubles& means, const Doubles& w,
                       const OutDoubles& out) {
    const nb::gil_scoped_release release;
    genotype_sums(genotypes(data, n_samples, means), w.data(), out.data());
}

void counts_of_genotypes(const Bytes& data, Index n_samples, const Doubles& means,
                         const OutPositions& out) {
    const nb::gil_scoped_release release;
    genotype_counts(genotypes(data, n_samples, means), out.data());
}

void gather_genotypes(const Bytes& data, Index n_samples, const Doubles& means,
                      const Positions& columns, const OutMatrix& out) {
    const nb::gil_scoped_release release;
    by_float(out, [&](auto* target) {
        using U = std::remove_const_t<std::remove_pointer_t<decltype(target)>>;
        genotype_gather(genotypes(data, n_samples, means), columns.data(),
                        static_cast<Index>(columns.shape(0)), static_cast<U*>(out.data()));
    });
}

void pair_sums(const Matrix& x, const Positions& first, const Positions& second, const Doubles& v,
               const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_float(x, [&](auto* data) {
        dense_pair_sums(data, Index{x.stride(1)}, static_cast<Index>(x.shape(0)), first.data(),
                        second.data(), static_cast<Index>(first.shape(0)), v.data(), out.data());
    });
}

void sparse_product(const Vector& data, const Vector& indices, const Vector& indptr, bool dots,
                    bool squared, const Doubles& v, const std::optional<Positions>& subset,
                    const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_float(data, [&](auto* values) {
        by_index(indices, [&](auto* positions) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(positions)>>;
            const Index count = static_cast<Index>(subset ? subset->shape(0) : indptr.shape(0) - 1);
            const Index length = static_cast<Index>(dots ? v.shape(0) : out.shape(0));
            const Compressed<T, I> x{values, positions, static_cast<const I*>(indptr.data()),
                                     count,  length,    optional_data(subset)};
            dots ? sparse_dots(x, v.data(), out.data(), squared)
                 : sparse_sums(x, v.data(), out.data(), squared);
        });
    });
}

void sparse_gram(const Vector& data, const Vector& indices, const Vector& indptr,
                 const Doubles& weights, const OutMatrix& out) {
    const nb::gil_scoped_release release;
    by_float(data, [&](auto* values) {
        by_index(indices, [&](auto* positions) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(positions)>>;
            const Compressed<T, I> x{values,
                                     positions,
                                     static_cast<const I*>(indptr.data()),
                                     static_cast<Index>(weights.shape(0)),
                                     static_cast<Index>(out.shape(0)),
                                     nullptr};
            sparse_squares(x, weights.data(), static_cast<double*>(out.data()));
        });
    });
}

void sparse_pairs(const Vector& data, const Vector& indices, const Vector& indptr,
                  const Positions& first, const Positions& second, const Doubles& v,
                  const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_float(data, [&](auto* values) {
        by_index(indices, [&](auto* positions) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(positions)>>;
            const Compressed<T, I> x{values,
                                     positions,
                                     static_cast<const I*>(indptr.data()),
                                     static_cast<Index>(indptr.shape(0)) - 1,
                                     static_cast<Index>(v.shape(0)),
                                     nullptr};
            sparse_pair_sums(x, first.data(), second.data(), static_cast<Index>(first.shape(0)),
                             v.data(), out.data());
        });
    });
}

// Calls f with the coded columns, whose rows are given by compressed arrays or are all of them.
template <class F>
void by_codes(const Bytes& codes, const std::optional<Vector>& indices,
              const std::optional<Vector>& indptr, Index n_rows, const Positions& starts, F&& f) {
    const nb::gil_scoped_release release;
    if (!indices)
        return f(Codes<std::int32_t>{codes.data(), nullptr, nullptr, n_rows, starts.data()});
    by_index(*indices, [&](auto* rows) {
        using I = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
        f(Codes<I>{codes.data(), rows, static_cast<const I*>(indptr->data()), n_rows,
                   starts.data()});
    });
}

void histograms_of_codes(const Bytes& codes, const std::optional<Vector>& indices,
                         const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                         const Positions& columns, const Positions& offsets, const Doubles& v,
                         Index width, const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        code_histograms(x, columns.data(), offsets.data(), static_cast<Index>(columns.shape(0)),
                        v.data(), width, out.data());
    });
}

void scores_of_thermometers(const Bytes& codes, const std::optional<Vector>& indices,
                            const std::optional<Vector>& indptr, Index n_rows,
                            const Positions& starts, const Doubles& values, const Positions& zero,
                            const Positions& columns, const Positions& offsets, const Doubles& v,
                            Index width, bool norms, const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        thermometer_scores(x, values.data(), zero.data(), columns.data(), offsets.data(),
                           static_cast<Index>(columns.shape(0)), v.data(), width, norms,
                           out.data());
    });
}

void scores_of_tables(const Bytes& codes, const std::optional<Vector>& indices,
                      const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                      const Doubles& tables, const Positions& begins, const Positions& columns,
                      const Positions& offsets, const Doubles& v, Index width, bool squared,
                      const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        table_scores(x, tables.data(), begins.data(), columns.data(), offsets.data(),
                     static_cast<Index>(columns.shape(0)), v.data(), width, squared, out.data());
    });
}

void levels_of_columns(const Vector& values, const std::optional<Vector>& rows,
                       const Positions& begin, const Doubles& weight, const Doubles& shares,
                       bool uniform, const OutDoubles& levels, const OutPositions& counts,
                       const OutPositions& zero) {
    const nb::gil_scoped_release release;
    const Binning binning{shares.data(), static_cast<Index>(shares.shape(0)), uniform};
    const Index n_columns = static_cast<Index>(begin.shape(0)) - 1;
    const Index n_rows = static_cast<Index>(weight.shape(0));
    by_float(values, [&](auto* data) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        const auto found = [&](auto* places) {
            using I = std::remove_const_t<std::remove_pointer_t<decltype(places)>>;
            find_levels(Listed<T, I>{data, places, begin.data(), n_columns, n_rows}, weight.data(),
                        binning, levels.data(), counts.data(), zero.data());
        };
        if (!rows) return found(static_cast<const std::int32_t*>(nullptr));
        by_index(*rows, found);
    });
}

void codes_of_columns(const Vector& values, const Positions& begin, const Doubles& levels,
                      const Positions& starts, const OutBytes& codes) {
    const nb::gil_scoped_release release;
    by_float(values, [&](auto* data) {
        encode_columns(data, begin.data(), static_cast<Index>(begin.shape(0)) - 1, levels.data(),
                       starts.data(), codes.data());
    });
}

void joint_sums(const Bytes& first, const Bytes& second, const Doubles& weights,
                const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    joint_histogram(first.data(), second.data(), static_cast<Index>(weights.shape(0)),
                    static_cast<Index>(out.shape(0)), static_cast<Index>(out.shape(1)),
                    weights.data(), out.data());
}

void sums_of_pairs(const Bytes& codes, Index n_levels, const Positions& first,
                   const Positions& second, const Doubles& weights, Index width,
                   const OutDoubles& out) {
    const nb::gil_scoped_release release;
    const Index n_rows = static_cast<Index>(weights.shape(0)) / width;
    pair_histograms(codes.data(), n_rows, n_levels, first.data(), second.data(),
                    static_cast<Index>(first.shape(0)), weights.data(), width, out.data());
}

std::pair<int, Index> check(const Vector& indices, const Vector& indptr, Index n_minor) {
    const nb::gil_scoped_release release;
    const SparseCheck result = by_index(indices, [&](auto* positions) {
        using I = std::remove_const_t<std::remove_pointer_t<decltype(positions)>>;
        return sparse_check(positions, static_cast<Index>(indices.shape(0)),
                            static_cast<const I*>(indptr.data()),
                            static_cast<Index>(indptr.shape(0)) - 1, n_minor);
    });
    return {static_cast<int>(result.fault), result.position};
}

int top(const Vector& z, const OutPositions& indices, const OutDoubles& values) {
    const nb::gil_scoped_release release;
    return static_cast<int>(by_float(z, [&](auto* data) {
        return top_magnitude(data, static_cast<Index>(z.shape(0)),
                             static_cast<Index>(indices.shape(0)), indices.data(), values.data());
    }));
}

std::pair<int, double> norm_of_top(const Vector& z, Index count) {
    const nb::gil_scoped_release release;
    double norm = 0.0;
    const Status status = by_float(z, [&](auto* data) {
        return top_norm(data, static_cast<Index>(z.shape(0)), count, &norm);
    });
    return {static_cast<int>(status), norm};
}

// method -1: ours; else one of the alternatives.
std::pair<int, double> prox(int method, const Vector& v, Index k, double step, const OutVector& w) {
    const nb::gil_scoped_release release;
    double scale = 0.0;
    const Status status = by_float(v, [&](auto* data) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        const Index n = static_cast<Index>(v.shape(0));
        T* out = static_cast<T*>(w.data());
        return method < 0 ? ksupport_prox(data, n, k, step, out, &scale)
                          : ksupport_prox_alternative(static_cast<Alternative>(method), data, n, k,
                                                      step, out, &scale);
    });
    return {static_cast<int>(status), scale};
}

// bounds: F at 0, and the ends of the interval that the root lies in.
std::pair<int, double> multiplier(const Doubles& v, Index k, double amount, bool penalized,
                                  const Doubles& bounds, const OutDoubles& room) {
    const nb::gil_scoped_release release;
    const double* b = bounds.data();
    double mu = 0.0;
    const Status status = ksupport_multiplier(v.data(), static_cast<Index>(v.shape(0)), k, amount,
                                              penalized, b[0], b[1], b[2], room.data(), &mu);
    return {static_cast<int>(status), mu};
}

std::pair<int, double> gauge(const Vector& w, Index k) {
    const nb::gil_scoped_release release;
    double value = 0.0;
    const Status status = by_float(w, [&](auto* data) {
        return ksupport_gauge(data, static_cast<Index>(w.shape(0)), k, &value);
    });
    return {static_cast<int>(status), value};
}

int norms_of_groups(const Vector& z, const Positions& labels, const OutDoubles& out) {
    const nb::gil_scoped_release release;
    return static_cast<int>(by_float(z, [&](auto* data) {
        return group_norms(data, labels.data(), static_cast<Index>(z.shape(0)),
                           static_cast<Index>(out.shape(0)), out.data());
    }));
}

void threshold(const Vector& v, double level, const OutVector& out) {
    const nb::gil_scoped_release release;
    by_float(v, [&](auto* data) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        soft_threshold(data, static_cast<Index>(v.shape(0)), level, static_cast<T*>(out.data()));
    });
}

// counts: in and out the atoms in use and the updates of their factor; out the full steps, drop
// steps and refactorizations. figures: in and out sigma; out the least pivot ratio, the drift and
// the multiplier of the radius.
int active_set_program(const DoubleMatrix& gram, const Doubles& linear, bool linear_is_gradient,
                       const std::optional<Doubles>& price, double coupling, double ridge,
                       double radius, bool equality, double level, bool is_signed,
                       const OutDoubleMatrix& factor, const OutPositions& order,
                       const OutPositions& counts, const OutDoubles& figures,
                       const OutDoubles& weights, Index batch, Index max_pivots) {
    const nb::gil_scoped_release release;
    const QuadraticProgram program{gram.data(),
                                   Index{gram.stride(0)},
                                   static_cast<Index>(weights.shape(0)),
                                   linear.data(),
                                   linear_is_gradient,
                                   price ? price->data() : nullptr,
                                   coupling,
                                   ridge,
                                   radius,
                                   equality,
                                   level,
                                   is_signed};
    ActiveFactor state{factor.data(),    static_cast<Index>(factor.shape(1)),
                       order.data(),     counts.data()[0],
                       counts.data()[1], figures.data()[0]};
    const QPOutcome outcome = active_set(program, state, weights.data(), batch, max_pivots);
    counts.data()[0] = state.count;
    counts.data()[1] = state.updates;
    counts.data()[2] = outcome.full_steps;
    counts.data()[3] = outcome.drop_steps;
    counts.data()[4] = outcome.refactorizations;
    figures.data()[0] = state.sigma;
    figures.data()[1] = outcome.smallest_pivot;
    figures.data()[2] = outcome.drift;
    figures.data()[3] = outcome.multiplier;
    return static_cast<int>(outcome.status);
}

// Takes the function pointer out of a capsule of SciPy's; false where it is not as expected.
bool provide_blas(const char* name, const nb::object& capsule) {
    if (!PyCapsule_CheckExact(capsule.ptr())) return false;
    const char* signature = PyCapsule_GetName(capsule.ptr());
    if (signature == nullptr) return false;
    return blas::provide(name, signature, PyCapsule_GetPointer(capsule.ptr(), signature));
}

// matrix: the Gram matrix with `linear` (p), or the columns with the target (n). counts: out the
// steps and the systems solved. figures: out the objective and the gap.
int scalings_of_groups(const DoubleMatrix& matrix, bool is_gram, const Doubles& linear,
                       double squared_target, const Positions& starts, const Positions& members,
                       const Doubles& limit, const OutDoubles& scalings, const OutDoubles& slopes,
                       double gap_target, Index max_steps, const OutPositions& counts, const OutDoubles& figures) {
    const nb::gil_scoped_release release;
    LeastSquares loss{};
    loss.squared_target = squared_target;
    if (is_gram) {
        loss.gram = matrix.data();
        loss.gram_stride = Index{matrix.stride(0)};
        loss.linear = linear.data();
    } else {
        loss.columns = matrix.data();
        loss.stride = Index{matrix.stride(1)};
        loss.length = static_cast<Index>(matrix.shape(0));
        loss.target = linear.data();
    }
    const Groups groups{starts.data(), members.data(), static_cast<Index>(limit.shape(0)),
                        static_cast<Index>(slopes.shape(0))};
    const NewtonOutcome outcome =
        group_newton(loss, groups, limit.data(), scalings.data(), slopes.data(), gap_target,
                     max_steps);
    counts.data()[0] = outcome.steps;
    counts.data()[1] = outcome.systems;
    figures.data()[0] = outcome.objective;
    figures.data()[1] = outcome.gap;
    return static_cast<int>(outcome.status);
}

}  // namespace
}  // namespace atomlearn

constexpr const char* kSimdNames[] = {"baseline", "avx2", "avx512"};

// The best of this processor, but no better than ATOMLEARN_SIMD.
void choose_simd() {
    using atomlearn::simd, atomlearn::Simd;
#ifdef ATOMLEARN_X86
    if (__builtin_cpu_supports("x86-64-v3")) simd = Simd::avx2;
    if (__builtin_cpu_supports("x86-64-v4")) simd = Simd::avx512;
#endif
    const char* given = std::getenv("ATOMLEARN_SIMD");
    const std::string limit = given ? given : "";
    if (limit.empty()) return;
    const auto* found = std::find(std::begin(kSimdNames), std::end(kSimdNames), limit);
    if (found == std::end(kSimdNames))
        throw std::invalid_argument("ATOMLEARN_SIMD must be baseline, avx2 or avx512, got \"" +
                                    limit + "\": set one of these, or unset the variable");
    simd = std::min(simd, static_cast<Simd>(found - kSimdNames));
}

NB_MODULE(_native, m) {
    choose_simd();
    // Blocks that outlive the module at the end of a process are no leak.
    nb::set_leak_warnings(false);
    using namespace atomlearn;
    m.def("simd", [] { return kSimdNames[static_cast<int>(simd)]; });
    m.def("dense_product", &dense_product, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().none(), nb::arg().noconvert());
    m.def("gather", &gather, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(),
          nb::arg().none(), nb::arg().noconvert());
    m.def("genotype_dots", &dots_of_genotypes, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("genotype_sums", &sums_of_genotypes, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("genotype_counts", &counts_of_genotypes, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert());
    m.def("genotype_gather", &gather_genotypes, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("pair_sums", &pair_sums, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_product", &sparse_product, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().none(),
          nb::arg().noconvert());
    m.def("sparse_gram", &sparse_gram, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_pairs", &sparse_pairs, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert());
    m.def("code_histograms", &histograms_of_codes, nb::arg().noconvert(), nb::arg().none(),
          nb::arg().none(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert());
    m.def("thermometer_scores", &scores_of_thermometers, nb::arg().noconvert(), nb::arg().none(),
          nb::arg().none(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert());
    m.def("table_scores", &scores_of_tables, nb::arg().noconvert(), nb::arg().none(),
          nb::arg().none(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert());
    m.def("find_levels", &levels_of_columns, nb::arg().noconvert(), nb::arg().none(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("encode_columns", &codes_of_columns, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("joint_histogram", &joint_sums, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert());
    m.def("pair_histograms", &sums_of_pairs, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert());
    m.def("check", &check, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg());
    m.def("top", &top, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("norm_of_top", &norm_of_top, nb::arg().noconvert(), nb::arg());
    m.def("prox", &prox, nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(),
          nb::arg().noconvert());
    m.def("multiplier", &multiplier, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert());
    m.def("gauge", &gauge, nb::arg().noconvert(), nb::arg());
    m.def("norms_of_groups", &norms_of_groups, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert());
    m.def("active_set", &active_set_program, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg());
    m.def("provide_blas", &provide_blas, nb::arg(), nb::arg());
    m.def("group_newton", &scalings_of_groups, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert());
    bind_pairs(m);
    bind_sampled(m);
    watch_forks();
    m.def("max_threads", &threads_allowed);
    // Of the thread that calls it: OpenMP keeps the number for each.
    m.def("set_threads", [](int threads) { omp_set_num_threads(threads); });
    bind_many(m);
    bind_pivoting(m);
    bind_newton(m);
    m.def("threshold", &threshold, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert());
}
